#pragma once

#include <string>
#include <vector>

#include "visualize/log/run_folder.hpp"

namespace zerolab::diagram {

/// Elements [begin, end) of a parameter with its padding, which belong to one rank.
struct Part {
  log::Count begin = 0, end = 0;
  log::Count owner = 0;
  bool padding = false;

  bool operator==(const Part&) const = default;
};

/// Who owns which elements of a parameter (its place in run.json): nothing where every rank has all
/// of it, as in stage 0. In stages 1 and 2 the padding is behind all parameters and not in here.
std::vector<Part> parts_of(const log::Run& run, std::size_t parameter);

/// Which rank owns what, of runs one below the other, as a graph in DOT. Every parameter is a bar
/// of the same width, cut where ownership changes; padding is hatched. In stages 1 and 2 the flat
/// buffer that is cut stands above. Throws log::Unreadable for more ranks than a bar has room for.
std::string partition_dot(const std::vector<log::RunFolder>& runs);

}  // namespace zerolab::diagram
