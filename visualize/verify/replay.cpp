#include "visualize/verify/replay.hpp"

#include <fmt/format.h>

#include <fstream>
#include <memory>

#include "visualize/log/event_lines.hpp"
#include "visualize/verify/checkpoints.hpp"
#include "visualize/verify/collectives.hpp"
#include "visualize/verify/gradients.hpp"
#include "visualize/verify/ledger.hpp"
#include "visualize/verify/order.hpp"
#include "visualize/verify/states.hpp"
#include "visualize/verify/steps.hpp"
#include "visualize/verify/uses.hpp"

namespace zerolab::verify {
namespace {

/// Everything that is checked in the log of one rank.
struct RankReplay {
  RankReplay(const Catalogue& catalogue, Count rank, Violations& violations)
      : report(violations, log::event_file_name(rank)),
        order(rank, report),
        states(catalogue, report),
        uses(catalogue, report, states),
        gradients(catalogue, report),
        ledger(catalogue.run(), report),
        steps(catalogue.run(), rank, report),
        checkpoints(rank, report),
        collectives(rank, report) {}
  RankReplay(const RankReplay&) = delete;  // its parts refer to each other
  RankReplay& operator=(const RankReplay&) = delete;

  void see(const log::Event& event) {
    ++events;
    last_line = event.line;
    order.see(event);
    std::visit([&](const auto& what) { see(event, what); }, event.what);
  }
  void see(const log::Event& event, const log::ParamEvent& move) {
    uses.see(event, move);
    states.see(event, move);
  }
  void see(const log::Event& event, const log::GradEvent& move) { gradients.see(event, move); }
  void see(const log::Event& event, const log::MemoryEvent& memory) { ledger.see(event, memory); }
  void see(const log::Event& event, const log::CommEvent& comm) {
    states.see(event, comm);
    gradients.see(event, comm);
    collectives.see(event, comm);
  }
  void see(const log::Event& event, const log::SpanEvent& span) { uses.see(event, span); }
  void see(const log::Event& event, const log::StepEvent& step) {
    ++notes_and_steps;
    uses.see(event, step);
    gradients.see(event, step);
    ledger.see(step);
    steps.see(event, step);
    collectives.see(event, step);
  }
  void see(const log::Event& event, const log::CheckpointEvent& checkpoint) {
    ++notes_and_steps;
    checkpoints.see(event, checkpoint);
  }
  void see(const log::Event& /*event*/, const log::NoteEvent& /*note*/) { ++notes_and_steps; }

  Reporter report;
  Order order;
  States states;
  Uses uses;
  Gradients gradients;
  Ledger ledger;
  Steps steps;
  Checkpoints checkpoints;
  Collectives collectives;
  Count events = 0, notes_and_steps = 0, last_line = 0;
};

using Ranks = std::map<Count, std::unique_ptr<RankReplay>>;

// The declared machine is only held against the reference: what moved is judged by the reference.
void check_declared(const log::Run& run, Violations& violations) {
  const Reporter report(violations, "run.json");
  const auto refuse = [&](const auto& from, const auto& to, const std::string& rest) {
    report(Kind::declared_moves, 0,
           fmt::format("state_machine has a move from {} to {}{}, which no stage makes", from, to,
                       rest));
  };
  for (const log::Move& move : run.moves) {
    if (known(move)) continue;
    refuse(name_of(move.from), name_of(move.to), fmt::format(" by {}", name_of(move.cause)));
  }
  for (const log::GradientMove& move : run.gradient_moves) {
    if (!legal(move)) refuse(name_of(move.from), name_of(move.to), " of a gradient");
  }
}

// Whether the log goes on to the end of the run.
bool replay_rank(const log::RunFolder& folder, std::istream& in, Count rank, RankReplay& replay,
                 Verdict& verdict) {
  log::EventLines lines(in);
  while (const auto line = lines.next()) {
    if (line->event) {
      replay.see(*line->event);
    } else {
      replay.report(Kind::unreadable_line, line->number, "the line " + line->mistake);
    }
  }
  verdict.events += replay.events;
  if (lines.cut_in() > 0) {
    verdict.remarks.push_back(fmt::format("{} ends in the middle of line {}",
                                          log::event_file_name(rank), lines.cut_in()));
  }
  if (!folder.summary) return false;
  const Count steps = folder.summary->steps.size();
  if (lines.cut_in() == 0 && replay.steps.done() >= steps) return true;
  replay.report(
      Kind::ends_early, lines.cut_in() > 0 ? lines.cut_in() : replay.last_line,
      fmt::format("the log ends after {} step(s){}, summary.json has {}", replay.steps.done(),
                  lines.cut_in() > 0 ? ", in the middle of a line" : "", steps));
  return false;
}

void compare_ranks(const log::RunFolder& folder, const Ranks& ranks, bool whole) {
  const RankReplay& first = *ranks.begin()->second;
  std::vector<const Collectives*> collectives;
  std::vector<const Checkpoints*> checkpoints;
  for (const auto& [rank, replay] : ranks) {
    replay->steps.compare_with(first.steps);
    collectives.push_back(&replay->collectives);
    checkpoints.push_back(&replay->checkpoints);
    const bool begun = whole || replay->steps.done() > 0;
    if (folder.run.resumed && begun) replay->checkpoints.expect_loaded(*folder.run.resumed);
  }
  Collectives::compare(collectives, folder.run.world_size, whole);
  Checkpoints::compare(checkpoints, whole);
  if (folder.summary) first.steps.compare_with(*folder.summary);
  if (whole && ranks.size() == folder.run.world_size) {
    Checkpoints::compare_with(*folder.summary, checkpoints);
  }
}

void remark_on_end(const log::RunFolder& folder, Verdict& verdict) {
  if (folder.failure) {
    const std::optional<log::Count> rank = folder.failure->rank;
    verdict.remarks.push_back(fmt::format("the run ended with {}{}", folder.failure->code,
                                          rank ? fmt::format(" on rank {}", *rank) : ""));
  } else if (!folder.summary) {
    verdict.remarks.emplace_back("the run did not end: there is no summary.json");
  }
}

// Whether there was anything to judge.
void expect_events(const log::RunFolder& folder, const Ranks& ranks) {
  Count of_steps = 0, all = 0;
  for (const auto& [rank, replay] : ranks) {
    of_steps += replay->notes_and_steps;
    all += replay->events;
  }
  if (all > of_steps) return;
  throw log::Unreadable(
      fmt::format("{} has {}, so there is nothing to replay", folder.path.string(),
                  ranks.empty() ? "no event files"
                  : all == 0    ? "no events"
                                : "events of steps only"),
      "make the run again with --log-level events");
}

}  // namespace

Verdict replay(const log::RunFolder& folder) {
  const Catalogue catalogue(folder);
  Verdict verdict{.ranks = folder.run.world_size, .remarks = {}, .violations = {}};
  remark_on_end(folder, verdict);
  check_declared(folder.run, verdict.violations);
  Ranks ranks;
  bool whole = folder.summary.has_value();
  for (Count rank = 0; rank < folder.run.world_size; ++rank) {
    const std::string name = log::event_file_name(rank);
    std::ifstream in(folder.path / name, std::ios::binary);
    if (!in || !std::filesystem::is_regular_file(folder.path / name)) {
      Reporter(verdict.violations, name)(Kind::missing_file, 0,
                                         fmt::format("there is no log of rank {}", rank));
      continue;
    }
    RankReplay& replay =
        *(ranks[rank] = std::make_unique<RankReplay>(catalogue, rank, verdict.violations));
    const bool ends = replay_rank(folder, in, rank, replay, verdict);
    whole = whole && ends;
    if (!ends) continue;
    replay.uses.end();
    replay.ledger.end(rank, folder.summary->memory[rank]);
    if (rank == 0) replay.collectives.compare_with(*folder.summary, folder.run);
  }
  expect_events(folder, ranks);
  verdict.steps = ranks.begin()->second->steps.done();
  compare_ranks(folder, ranks, whole);
  return verdict;
}

}  // namespace zerolab::verify
