#pragma once

#include "lab/subcommands.hpp"

namespace zerolab {

/// `zerolab fail`: the failure clinic.
Subcommand fail_subcommand();

}  // namespace zerolab
