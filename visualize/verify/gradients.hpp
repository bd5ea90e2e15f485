#pragma once

#include <vector>

#include "visualize/verify/transfers.hpp"

namespace zerolab::verify {

/// Replays the moves of all gradients of a rank, and their reductions against the collectives.
class Gradients {
 public:
  Gradients(const Catalogue& catalogue, const Reporter& report);

  void see(const log::Event& event, const log::GradEvent& move);
  void see(const log::Event& event, const log::CommEvent& comm);
  void see(const log::Event& event, const log::StepEvent& step);

 private:
  struct Gradient {
    log::GradientStatus status = log::GradientStatus::none;
    Count line = 0;     // of the latest move
    Count reduced = 0;  // times in this step
  };

  const Catalogue& catalogue_;
  const Reporter& report_;
  Transfers reductions_;
  std::vector<Gradient> gradients_;
};

}  // namespace zerolab::verify
