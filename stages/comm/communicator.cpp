#include "stages/comm/communicator.hpp"

#include <fmt/format.h>

#include <utility>

namespace zerolab {

PeerFailed::PeerFailed(int failed_rank)
    : Error(Code::peer_failed, fmt::format("rank {} failed, so this rank stops", failed_rank),
            fmt::format("see the message of rank {}", failed_rank)),
      failed_rank_(failed_rank) {}

Error collective_mismatch(std::string_view noticed) {
  return Error(Code::collective_mismatch,
               fmt::format("the ranks are not at the same collective: {}", noticed),
               "every rank must run the same modules in the same order: look for a branch that "
               "depends on the rank or on its data");
}

void meet(Communicator& communicator, std::string why) {
  Exchange round{.signature = {.owner = std::move(why)}};
  round.label = fingerprint(round.signature);
  for (int peer = 0; peer < communicator.size(); ++peer) {
    if (peer == communicator.rank()) continue;
    round.sends.push_back({peer, {}});
    round.receives.push_back({peer, {}});
  }
  communicator.exchange(round);
}

}  // namespace zerolab
