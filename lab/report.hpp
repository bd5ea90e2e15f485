#pragma once

#include "lab/subcommands.hpp"

namespace zerolab {

/// `zerolab report`: what one run or several did, as one HTML page.
Subcommand report_subcommand();

}  // namespace zerolab
