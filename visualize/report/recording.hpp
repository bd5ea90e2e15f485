#pragma once

#include <algorithm>
#include <set>

#include "visualize/log/run_folder.hpp"
#include "visualize/report/names.hpp"

namespace zerolab::report {

using log::Count;

// What a report keeps of the events of one rank: figures of every step, and a few steps in full.
// Times are in microseconds: absolute where they are called so, else since the step began.

struct MemoryChange {
  double t = 0;
  log::Category category = log::Category::parameters;
  double bytes = 0;  // below 0: given back
  std::size_t owner = 0;
};

struct Transfer {
  log::Op op = log::Op::barrier;
  Count elements = 0, bytes_sent = 0;
  double issued = 0, started = 0, finished = 0;
  double waited = 0, told = 0;  // the compute thread stood between the two
  std::size_t owner = 0;
  double wait() const { return std::max(0.0, told - waited); }
};

struct Span {
  std::size_t module = 0;
  log::VisitKind kind = log::VisitKind::forward;
  double start = 0, end = 0;
  Count depth = 0;  // of modules that run inside others
};

struct Transition {
  double t = 0;
  std::size_t parameter = 0;  // in run.json
  log::Status from = log::Status::not_available, to = log::Status::not_available;
  log::Cause cause = log::Cause::set_up;
  std::size_t module = 0;
};

struct PhaseBegin {
  double t = 0;
  log::Phase phase = log::Phase::set_up;
  Count micro_step = 0;
};

/// A step of a rank in full. Step 0 is set-up.
struct StepView {
  Count step = 0;
  double begin = 0, end = 0;  // absolute
  bool ended = false;         // otherwise the log stops in it
  log::Usage live{};          // when it began
  std::vector<log::Status> states;
  std::vector<PhaseBegin> phases;
  std::vector<MemoryChange> memory;
  std::vector<Transfer> transfers;
  std::vector<Span> spans;
  std::vector<Transition> transitions;
  Count left_out = 0;  // events that were thinned away
};

/// A step of a rank in figures.
struct StepFigures {
  Count step = 0;
  double duration = 0, peak = 0;
  double gather_wait = 0, reduce_wait = 0, other_wait = 0;  // of the compute thread
  double transfer = 0;                                      // in collectives
  log::StepEvent result;
};

struct RankRecording {
  bool there = false;
  Count events = 0, unreadable = 0, cut_in = 0;
  std::string first_unreadable;
  bool in_full = false;  // it has more than steps and notes
  std::vector<StepFigures> steps;
  std::vector<StepView> views;
  log::Usage peak{}, steady{};  // as summary.json has them
  double checkpoint_seconds = 0;
};

/// Which steps are kept in full: those named, and the last one that the log has.
struct Wanted {
  std::set<Count> steps;
  bool in_full = true;  // or no step of this rank
};

RankRecording record(const log::RunFolder& folder, Count rank, const Wanted& wanted, Names& names);

/// Leaves out what is least seen until about `most` entries are left: the memory between the
/// extremes of a moment, the shortest spans and transfers, the latest transitions.
void thin(StepView& view, std::size_t most);

}  // namespace zerolab::report
