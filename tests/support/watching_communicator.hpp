#pragma once

#include <functional>
#include <utility>

#include "stages/comm/communicator_wrapper.hpp"

namespace zerolab::test {

/// A communicator that shows every round to a test before it sends it. The test is called by the
/// thread that runs the collectives of this rank.
class WatchingCommunicator : public CommunicatorWrapper {
 public:
  using Watch = std::function<void(const Exchange&)>;

  WatchingCommunicator(Communicator& inner, Watch watch)
      : CommunicatorWrapper(inner), watch_(std::move(watch)) {}

  void exchange(const Exchange& round) override {
    watch_(round);
    CommunicatorWrapper::exchange(round);
  }

 private:
  Watch watch_;
};

}  // namespace zerolab::test
