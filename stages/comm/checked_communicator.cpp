#include "stages/comm/checked_communicator.hpp"

#include <algorithm>

namespace zerolab {
namespace {

// Questions meet each other, whatever they ask about.
constexpr std::uint64_t kQuestion = 1;

}  // namespace

void CheckedCommunicator::exchange(const Exchange& round) {
  if (round.round == 0) compare(round.signature);
  inner_.exchange(round);
}

void CheckedCommunicator::compare(const Signature& signature) {
  const std::uint64_t mine = fingerprint(signature);
  std::vector<std::uint64_t> all(static_cast<std::size_t>(size()), mine);
  Exchange question{.signature = signature, .label = kQuestion};
  for (int peer = 0; peer < size(); ++peer) {
    if (peer == rank()) continue;
    question.sends.push_back({peer, std::as_bytes(std::span(&mine, 1))});
    question.receives.push_back(
        {peer, std::as_writable_bytes(std::span(&all[static_cast<std::size_t>(peer)], 1))});
  }
  inner_.exchange(question);
  sent_ += static_cast<Index>(sizeof mine) * (size() - 1);
  if (std::any_of(all.begin(), all.end(), [mine](std::uint64_t other) { return other != mine; })) {
    throw collective_mismatch("their fingerprints differ");
  }
}

}  // namespace zerolab
