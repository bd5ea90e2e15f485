#pragma once

#include <optional>
#include <vector>

#include "visualize/log/run_folder.hpp"
#include "visualize/verify/findings.hpp"

namespace zerolab::verify {

/// The optimizer steps that the log of a rank tells, in order. A run that was resumed begins behind
/// those of its checkpoint.
class Steps {
 public:
  Steps(const log::Run& run, Count rank, const Reporter& report)
      : before_(run.resumed ? run.resumed->step : 0), rank_(rank), report_(report) {}

  void see(const log::Event& event, const log::StepEvent& step);

  Count done() const { return steps_.size(); }  // in this run
  /// Every rank has the same results.
  void compare_with(const Steps& first) const;
  void compare_with(const log::Summary& summary) const;

 private:
  struct Told {
    Count line = 0;
    log::StepEvent step;
  };
  Count number(std::size_t i) const { return before_ + i + 1; }

  Count before_;  // steps done when the run began
  Count rank_;
  const Reporter& report_;
  std::vector<Told> steps_;
};

}  // namespace zerolab::verify
