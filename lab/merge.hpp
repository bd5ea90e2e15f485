#pragma once

#include "lab/subcommands.hpp"

namespace zerolab {

/// `zerolab merge`: a checkpoint's weights in one file.
Subcommand merge_subcommand();

}  // namespace zerolab
