#pragma once

#include <optional>
#include <vector>

#include "visualize/log/run_folder.hpp"
#include "visualize/verify/findings.hpp"

namespace zerolab::verify {

/// The optimizer steps that the log of a rank tells, in order.
class Steps {
 public:
  Steps(Count rank, const Reporter& report) : rank_(rank), report_(report) {}

  void see(const log::Event& event, const log::StepEvent& step);

  Count done() const { return steps_.size(); }
  /// Every rank has the same results.
  void compare_with(const Steps& first) const;
  void compare_with(const log::Summary& summary) const;

 private:
  struct Told {
    Count line = 0;
    log::StepEvent step;
  };
  Count rank_;
  const Reporter& report_;
  std::vector<Told> steps_;
};

}  // namespace zerolab::verify
