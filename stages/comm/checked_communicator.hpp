#pragma once

#include "stages/comm/communicator.hpp"

namespace zerolab {

/// Before the first round of every collective lets all ranks exchange the fingerprints of its
/// signature, so that ranks which are at different collectives learn it before any data moves. (A
/// transport notices by itself, but may have moved a part by then.)
///
/// Costs 8 bytes to every peer for each collective, and the wait for them.
class CheckedCommunicator final : public Communicator {
 public:
  explicit CheckedCommunicator(Communicator& inner) : inner_(inner) {}

  int rank() const override { return inner_.rank(); }
  int size() const override { return inner_.size(); }
  std::string description() const override { return inner_.description(); }
  void exchange(const Exchange& round) override;
  Index extra_bytes_sent() const override { return inner_.extra_bytes_sent() + sent_; }
  bool announce_failure() override { return inner_.announce_failure(); }
  void acknowledge_failure() override { inner_.acknowledge_failure(); }
  std::vector<std::string> whereabouts() const override { return inner_.whereabouts(); }

 private:
  void compare(const Signature& signature);

  Communicator& inner_;
  Index sent_ = 0;
};

}  // namespace zerolab
