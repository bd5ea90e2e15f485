#pragma once

#include "stages/comm/communicator.hpp"

namespace zerolab {

/// A communicator that is another one, which must outlive it; what derives from it changes the
/// rounds (a link, a checker, a deliberate mistake).
class CommunicatorWrapper : public Communicator {
 public:
  explicit CommunicatorWrapper(Communicator& inner) : inner_(inner) {}

  int rank() const override { return inner_.rank(); }
  int size() const override { return inner_.size(); }
  std::string description() const override { return inner_.description(); }
  void exchange(const Exchange& round) override { inner_.exchange(round); }
  Index extra_bytes_sent() const override { return inner_.extra_bytes_sent(); }
  bool announce_failure() override { return inner_.announce_failure(); }
  void acknowledge_failure() override { inner_.acknowledge_failure(); }
  std::vector<std::string> whereabouts() const override { return inner_.whereabouts(); }

 private:
  Communicator& inner_;
};

}  // namespace zerolab
