#include "visualize/verify/checkpoints.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace zerolab::verify {

using log::Action;

bool Checkpoints::Told::same(const Told& other) const {
  return step == other.step && action == other.action && path == other.path;
}

std::string Checkpoints::Told::text() const {
  return fmt::format("{} of {} in step {}", name_of(action), in_quotes(path), step);
}

void Checkpoints::see(const log::Event& event, const log::CheckpointEvent& checkpoint) {
  told_.push_back({event.line, event.step, checkpoint.action, checkpoint.path, checkpoint.bytes});
}

void Checkpoints::expect_loaded(const log::Resumed& resumed) const {
  const auto loaded = std::find_if(told_.begin(), told_.end(), [](const Told& each) {
    return each.action == Action::load && each.step == 0;
  });
  if (loaded != told_.end() && loaded->path == resumed.checkpoint) return;
  report_(Kind::not_resumed, loaded == told_.end() ? 0 : loaded->line,
          fmt::format("{} is loaded before the first step, run.json says that the run goes on from "
                      "{}",
                      loaded == told_.end() ? "nothing" : in_quotes(loaded->path),
                      in_quotes(resumed.checkpoint)));
}

void Checkpoints::compare(const std::vector<const Checkpoints*>& ranks, bool whole) {
  const Checkpoints& first = *ranks.front();
  for (const Checkpoints* rank : ranks) {
    const auto [here, there] =
        std::mismatch(rank->told_.begin(), rank->told_.end(), first.told_.begin(),
                      first.told_.end(), [](const Told& a, const Told& b) { return a.same(b); });
    const bool ends = here == rank->told_.end();
    const bool first_ends = there == first.told_.end();
    if ((ends || first_ends) && (ends == first_ends || !whole)) continue;
    rank->report_(
        Kind::checkpoint_of_ranks, ends ? 0 : here->line,
        fmt::format("checkpoint {} is {}, on rank {} it is {}", here - rank->told_.begin() + 1,
                    ends ? "none any more" : here->text(), first.rank_,
                    first_ends ? "none any more"
                               : fmt::format("{} (line {})", there->text(), there->line)));
  }
}

std::vector<Checkpoints::Told> Checkpoints::saved() const {
  std::vector<Told> saved;
  std::copy_if(told_.begin(), told_.end(), std::back_inserter(saved),
               [](const Told& each) { return each.action != Action::load; });
  return saved;
}

void Checkpoints::compare_with(const log::Summary& summary,
                               const std::vector<const Checkpoints*>& ranks) {
  const Checkpoints& first = *ranks.front();
  std::vector<Told> found = first.saved();
  for (const Checkpoints* rank : ranks) {
    if (rank == &first) continue;
    const std::vector<Told> theirs = rank->saved();
    if (theirs.size() != found.size()) return;  // compare() has told it
    for (std::size_t i = 0; i < found.size(); ++i) found[i].bytes += theirs[i].bytes;
  }
  const auto text_of = [](const auto& each) {
    return fmt::format("{} bytes to {} in step {}", each.bytes, in_quotes(each.path), each.step);
  };
  for (std::size_t i = 0; i < std::max(found.size(), summary.checkpoints.size()); ++i) {
    const std::string here = i < found.size() ? text_of(found[i]) : "nothing more";
    const std::string there =
        i < summary.checkpoints.size() ? text_of(summary.checkpoints[i]) : "nothing more";
    if (here == there) continue;
    first.report_(
        Kind::checkpoint_summary, i < found.size() ? found[i].line : 0,
        fmt::format("the logs of all ranks come to {}, summary.json has {}", here, there));
  }
}

}  // namespace zerolab::verify
