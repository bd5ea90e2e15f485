#pragma once

#include "visualize/verify/findings.hpp"

namespace zerolab::verify {

/// What every line of a rank's log has, whatever it tells.
class Order {
 public:
  Order(Count rank, const Reporter& report) : rank_(rank), report_(report) {}

  void see(const log::Event& event);

 private:
  Count rank_;
  const Reporter& report_;
  Count next_seq_ = 0;
  log::Event last_;
};

}  // namespace zerolab::verify
