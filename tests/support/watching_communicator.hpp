#pragma once

#include <functional>
#include <string>
#include <utility>

#include "stages/comm/communicator.hpp"

namespace zerolab::test {

/// A communicator that shows every round to a test before it sends it. The test is called by the
/// thread that runs the collectives of this rank.
class WatchingCommunicator : public Communicator {
 public:
  using Watch = std::function<void(const Exchange&)>;

  WatchingCommunicator(Communicator& inner, Watch watch)
      : inner_(inner), watch_(std::move(watch)) {}

  int rank() const override { return inner_.rank(); }
  int size() const override { return inner_.size(); }
  std::string description() const override { return inner_.description(); }
  void exchange(const Exchange& round) override {
    watch_(round);
    inner_.exchange(round);
  }
  bool announce_failure() override { return inner_.announce_failure(); }
  void acknowledge_failure() override { inner_.acknowledge_failure(); }
  std::vector<std::string> whereabouts() const override { return inner_.whereabouts(); }

 private:
  Communicator& inner_;
  Watch watch_;
};

}  // namespace zerolab::test
