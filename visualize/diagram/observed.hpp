#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "visualize/log/run_folder.hpp"

namespace zerolab::diagram {

/// A kind of move, and what a run made of it.
struct Transition {
  std::size_t from = 0, to = 0;  // places in Machine::states
  std::string cause;             // of a parameter's move; gradients have none
  bool legal = false;            // whether the run's stage declares it
  log::Count count = 0;          // over all ranks and steps; 0: declared, and never made
  log::Count timed = 0;          // of them those of which the log tells when `from` was entered
  double time = 0;               // microseconds in `from` before the move, summed over those

  /// Mean time in `from`, in microseconds.
  std::optional<double> mean_time() const;
};

/// A state machine: everything that the stage declares, and what else was seen.
struct Machine {
  std::vector<std::string> states;
  std::vector<Transition> transitions;  // ordered by from, to, cause
  std::vector<double> time;             // microseconds in each state, over ranks and parameters
};

/// What happened in a run, as far as states go.
struct Observed {
  std::string name;  // the run's folder
  log::Count stage = 0, ranks = 1;
  std::size_t selected = 0;  // parameters that were looked at
  std::size_t all = 0;       // parameters that there are
  Machine parameters, gradients;
  std::vector<std::string> remarks;  // what the log lacks
};

/// The parameters that are looked at, by name; without a value all of them.
using Selection = std::optional<std::set<std::string>>;

/// Reads the events of all ranks, line by line. What is wrong with the log becomes a remark, or an
/// illegal transition; its cause is kGap where a move begins elsewhere than the last one ended.
/// Throws log::Unreadable when there are no transitions in the log at all.
Observed observe(const log::RunFolder& folder, const Selection& selection = std::nullopt);

inline constexpr const char* kGap = "not in the log";

}  // namespace zerolab::diagram
