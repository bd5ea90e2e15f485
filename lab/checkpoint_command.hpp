#pragma once

#include "lab/subcommands.hpp"

namespace zerolab {

/// `zerolab checkpoint inspect` and `verify`: what is in a checkpoint, and whether it is whole.
Subcommand checkpoint_subcommand();

}  // namespace zerolab
