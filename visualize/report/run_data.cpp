#include "visualize/report/run_data.hpp"

namespace zerolab::report {
namespace {

constexpr Count kRanksInFull = 8;

Count first_step(const log::RunDetails& details) { return details.resumed_at.value_or(0) + 1; }

/// The first step, one in the middle, and the last one.
Wanted wanted_of(const RunData& run) {
  const Count first = first_step(run.details);
  const Count last = std::max(
      first,
      run.details.steps.value_or(run.folder.summary ? run.folder.summary->steps.size() : Count{0}));
  return {.steps = {first, (first + last + 1) / 2, last}, .in_full = true};
}

Count choose_step(const RunData& run) {
  const auto with_views =
      std::find_if(run.ranks.begin(), run.ranks.end(),
                   [](const RankRecording& rank) { return !rank.views.empty(); });
  if (with_views == run.ranks.end()) return 0;
  const std::vector<StepView>& views = with_views->views;
  if (run.folder.failure || !run.folder.summary) return views.back().step;
  return views[views.size() / 2].step;
}

}  // namespace

std::optional<Shares> shares_of(const RunData& run) {
  Shares sum;
  double time = 0;
  for (const RankRecording& rank : run.ranks) {
    if (!rank.in_full) continue;
    for (std::size_t i = rank.steps.size() > 1 ? 1 : 0; i < rank.steps.size(); ++i) {
      const StepFigures& step = rank.steps[i];
      time += step.duration;
      sum.gather_wait += step.gather_wait;
      sum.reduce_wait += step.reduce_wait;
      sum.other_wait += step.other_wait;
      sum.transfer += step.transfer;
    }
  }
  if (time <= 0) return std::nullopt;
  return Shares{sum.gather_wait / time, sum.reduce_wait / time, sum.other_wait / time,
                sum.transfer / time};
}

std::optional<log::Usage> peak_of(const RunData& run, std::size_t rank) {
  if (run.folder.summary) return run.folder.summary->memory[rank].peak;
  if (run.ranks[rank].in_full) return run.ranks[rank].peak;
  return std::nullopt;
}

RunData read_run(const std::filesystem::path& folder, std::size_t entries, Names& names) {
  RunData run{.folder = log::read_run_folder(folder),
              .details = log::read_run_details(folder),
              .summary = log::read_summary_details(folder),
              .failure = log::read_failure_details(folder),
              .theory = {},
              .ranks = {},
              .shown_step = 0};
  // A comparison that failed says so above its stages; the last of them did not end.
  const std::filesystem::path above = folder.parent_path();
  const std::string own = folder.filename().string();
  if (!run.folder.summary && !run.folder.failure && own.size() == 6 && own.starts_with("stage")) {
    run.folder.failure = log::read_failure(above);
    run.failure = log::read_failure_details(above);
  }
  run.theory = theory_of(run.folder.run, run.details, run.summary.dtype);
  const Count to_blame = run.folder.failure ? run.folder.failure->rank.value_or(0) : 0;
  Wanted wanted = wanted_of(run);
  std::size_t views = 0;
  for (Count rank = 0; rank < run.folder.run.world_size; ++rank) {
    wanted.in_full = rank < kRanksInFull || rank == to_blame;
    run.ranks.push_back(record(run.folder, rank, wanted, names));
    views += run.ranks.back().views.size();
  }
  for (RankRecording& rank : run.ranks) {
    for (StepView& view : rank.views) thin(view, entries / std::max<std::size_t>(views, 1));
  }
  run.shown_step = choose_step(run);
  return run;
}

}  // namespace zerolab::report
