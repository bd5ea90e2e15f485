#pragma once

#include <chrono>
#include <thread>

#include "stages/base/philox.hpp"
#include "tests/support/watching_communicator.hpp"

namespace zerolab::test {

/// Pauses of 0 to 5 ms, pseudo-random but the same in every run.
class Pauses {
 public:
  explicit Pauses(std::uint64_t seed) : random_(seed) {}

  void take() {
    const std::uint32_t word = random_(0, count_++).word[0];
    std::this_thread::sleep_for(std::chrono::microseconds(word % 5000));
  }

 private:
  Philox random_;
  std::uint64_t count_ = 0;
};

/// A communicator that pauses before every round.
class DelayingCommunicator : public WatchingCommunicator {
 public:
  explicit DelayingCommunicator(Communicator& inner)
      : WatchingCommunicator(inner, [this](const Exchange&) { pauses_.take(); }),
        pauses_(static_cast<std::uint64_t>(inner.rank())) {}

 private:
  Pauses pauses_;
};

}  // namespace zerolab::test
