#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "visualize/log/run_folder.hpp"

namespace zerolab::trace {

/// Writes a run as a trace in Chrome's JSON format, which Perfetto (ui.perfetto.dev) and
/// chrome://tracing open: a process for each rank, with the threads `compute` (steps, phases,
/// modules, waiting) and `communication` (collectives), an arrow from where a collective is issued
/// to where somebody waits for it, and the bytes of each category as counters. Times are those of
/// the log, in microseconds, from the first event of all on. Returns what the log lacks, a line for
/// each. Throws log::Unreadable when there are no events at all.
std::vector<std::string> write_chrome_trace(const log::RunFolder& folder, std::ostream& out);

}  // namespace zerolab::trace
