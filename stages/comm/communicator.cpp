#include "stages/comm/communicator.hpp"

#include <fmt/format.h>

#include <utility>

namespace zerolab {

PeerFailed::PeerFailed(int failed_rank)
    : Error(Code::peer_failed, fmt::format("rank {} failed, so this rank stops", failed_rank),
            fmt::format("see the message of rank {}", failed_rank)),
      failed_rank_(failed_rank) {}

Exchange everybody_to_everybody(int rank, int size, std::span<const std::byte> mine,
                                const std::vector<std::span<std::byte>>& all) {
  Exchange round;
  for (int step = 1; step < size; ++step) {
    // The next rank first, so that not everybody turns to rank 0 at once.
    const int peer = (rank + step) % size;
    round.sends.push_back({peer, mine});
    round.receives.push_back(
        {peer, all.empty() ? std::span<std::byte>{} : all[static_cast<std::size_t>(peer)]});
  }
  return round;
}

Error collective_mismatch(std::string_view noticed) {
  return Error(Code::collective_mismatch,
               fmt::format("the ranks are not at the same collective: {}", noticed),
               "every rank must run the same modules in the same order: look for a branch that "
               "depends on the rank or on its data; what holds it can be a leaf module");
}

void meet(Communicator& communicator, std::string why) {
  Exchange round = everybody_to_everybody(communicator.rank(), communicator.size(), {});
  round.signature.owner = std::move(why);
  round.label = fingerprint(round.signature);
  communicator.exchange(round);
}

}  // namespace zerolab
