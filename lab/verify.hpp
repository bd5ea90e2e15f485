#pragma once

#include "lab/subcommands.hpp"

namespace zerolab {

/// `zerolab verify`: replays the logs of a run folder, or of each stage of a comparison.
Subcommand verify_subcommand();

}  // namespace zerolab
