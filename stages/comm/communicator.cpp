#include "stages/comm/communicator.hpp"

#include <fmt/format.h>

namespace zerolab {

std::string_view name_of(Op op) {
  switch (op) {
    case Op::all_gather:
      return "all_gather";
    case Op::reduce_scatter:
      return "reduce_scatter";
    case Op::all_reduce:
      return "all_reduce";
    case Op::broadcast:
      return "broadcast";
    case Op::barrier:
      return "barrier";
    case Op::control:
      return "control";
  }
  return "?";
}

PeerFailed::PeerFailed(int failed_rank)
    : Error(Code::peer_failed, fmt::format("rank {} failed, so this rank stops", failed_rank),
            fmt::format("see the message of rank {}", failed_rank)),
      failed_rank_(failed_rank) {}

void meet(Communicator& communicator, std::string why) {
  Exchange round{.op = Op::barrier, .owner = std::move(why), .sends = {}, .receives = {}};
  for (int peer = 0; peer < communicator.size(); ++peer) {
    if (peer == communicator.rank()) continue;
    round.sends.push_back({peer, {}});
    round.receives.push_back({peer, {}});
  }
  communicator.exchange(round);
}

}  // namespace zerolab
