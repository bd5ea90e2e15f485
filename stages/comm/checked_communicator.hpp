#pragma once

#include "stages/comm/communicator_wrapper.hpp"

namespace zerolab {

/// Before the first round of every collective lets all ranks exchange the fingerprints of its
/// signature, so that ranks which are at different collectives learn it before any data moves. (A
/// transport notices by itself, but may have moved a part by then.)
///
/// Costs 8 bytes to every peer for each collective, and the wait for them.
class CheckedCommunicator final : public CommunicatorWrapper {
 public:
  using CommunicatorWrapper::CommunicatorWrapper;

  void exchange(const Exchange& round) override;
  Index extra_bytes_sent() const override {
    return CommunicatorWrapper::extra_bytes_sent() + sent_;
  }

 private:
  void compare(const Signature& signature);

  Index sent_ = 0;
};

}  // namespace zerolab
