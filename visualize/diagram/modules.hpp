#pragma once

#include <set>
#include <string>

#include "visualize/log/run_folder.hpp"

namespace zerolab::diagram {

/// The module tree with its parameters, as a graph in DOT. A dashed arrow leads from a module to
/// the owner of a parameter that it reads as an external one. Modules have the ids "module-0" and
/// so on, in the order of run.json. Throws log::Unreadable for more modules than anybody could look
/// at.
std::string modules_dot(const log::Run& run);

/// Names of the parameters that a module and everything below it own or read.
std::set<std::string> parameters_of(const log::Run& run, const std::string& module);

}  // namespace zerolab::diagram
