#pragma once

#include <memory>
#include <vector>

#include "stages/comm/communicator.hpp"
#include "stages/comm/patience.hpp"

namespace zerolab {

/// Ranks that are threads of this process. Messages are copied once, from the sender's memory into
/// the receiver's, by whichever of the two comes second; the first sleeps, so ranks may outnumber
/// cores. The world must outlive its ranks' last call.
class LocalWorld {
 public:
  explicit LocalWorld(int ranks, Patience patience = {});
  ~LocalWorld();
  LocalWorld(const LocalWorld&) = delete;
  LocalWorld& operator=(const LocalWorld&) = delete;

  int size() const { return static_cast<int>(ranks_.size()); }
  Communicator& rank(int rank) { return *ranks_[static_cast<std::size_t>(rank)]; }

 private:
  class MeetingPlace;
  class Rank;

  std::unique_ptr<MeetingPlace> place_;
  std::vector<std::unique_ptr<Communicator>> ranks_;
};

}  // namespace zerolab
