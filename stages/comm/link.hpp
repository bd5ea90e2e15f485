#pragma once

#include "stages/comm/communicator_wrapper.hpp"

namespace zerolab {

/// A network between the ranks that there is not. `bandwidth` 0 is as fast as it gets.
struct Link {
  double bandwidth = 0;  // bytes a second, in each direction
  double latency = 0;    // seconds a round takes before its first byte arrives

  bool slows() const { return bandwidth > 0 || latency > 0; }
};

/// Makes every round of a collective last at least as long as the link would take: latency, and the
/// larger of what this rank sends and receives, at the bandwidth. The data arrives as fast as it
/// does; its completion is held back, asleep, so that ranks which share cores do not slow each
/// other down and compute can overlap as it does on a cluster.
class LinkCommunicator : public CommunicatorWrapper {
 public:
  LinkCommunicator(Communicator& inner, Link link) : CommunicatorWrapper(inner), link_(link) {}

  void exchange(const Exchange& round) override;

  /// What this round costs on the link, in seconds.
  double cost(const Exchange& round) const;

 private:
  Link link_;
};

}  // namespace zerolab
