#pragma once

#include "lab/subcommands.hpp"

namespace zerolab {

/// `zerolab diagram`: pictures of a run, drawn from its logs.
Subcommand diagram_subcommand();

}  // namespace zerolab
