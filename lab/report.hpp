#pragma once

#include "lab/subcommands.hpp"

namespace zerolab {

/// `zerolab report`: what runs did, as one HTML page, or as a trace that Perfetto shows.
Subcommand report_subcommand();

}  // namespace zerolab
