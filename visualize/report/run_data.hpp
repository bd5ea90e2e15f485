#pragma once

#include "visualize/report/recording.hpp"
#include "visualize/report/theory.hpp"

namespace zerolab::report {

/// Everything that a report says of one run.
struct RunData {
  log::RunFolder folder;
  log::RunDetails details;
  log::SummaryDetails summary;
  log::FailureDetails failure;
  Theory theory;
  std::vector<RankRecording> ranks;  // by rank, as many as the run had

  /// The step that is shown first: of a run that failed the last one, else one in the middle.
  Count shown_step = 0;
};

/// Parts of the time of the optimizer steps, of all ranks together. The first step is left out
/// where there are others: in it stage 3 learns the order of modules, and caches are cold.
struct Shares {
  double gather_wait = 0, reduce_wait = 0, other_wait = 0, transfer = 0;
  double wait() const { return gather_wait + reduce_wait + other_wait; }
};
/// Nothing where no step was logged in full.
std::optional<Shares> shares_of(const RunData& run);

/// The highest total of a rank in bytes, from summary.json or else from its log; nothing if neither
/// says it.
std::optional<log::Usage> peak_of(const RunData& run, std::size_t rank);

/// Reads a run folder, and keeps at most about `entries` entries of steps in full.
/// Throws log::Unreadable.
RunData read_run(const std::filesystem::path& folder, std::size_t entries, Names& names);

}  // namespace zerolab::report
