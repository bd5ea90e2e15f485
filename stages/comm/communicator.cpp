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

}  // namespace zerolab
