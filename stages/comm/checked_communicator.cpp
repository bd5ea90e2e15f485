#include "stages/comm/checked_communicator.hpp"

#include <algorithm>

namespace zerolab {
namespace {

// Questions meet each other, whatever they ask about.
constexpr std::uint64_t kQuestion = 1;

}  // namespace

void CheckedCommunicator::exchange(const Exchange& round) {
  if (round.round == 0) compare(round.signature);
  CommunicatorWrapper::exchange(round);
}

void CheckedCommunicator::compare(const Signature& signature) {
  const std::uint64_t mine = fingerprint(signature);
  std::vector<std::uint64_t> all(static_cast<std::size_t>(size()), mine);
  std::vector<std::span<std::byte>> arriving;
  arriving.reserve(all.size());
  for (std::uint64_t& of_rank : all)
    arriving.push_back(std::as_writable_bytes(std::span(&of_rank, 1)));
  Exchange question =
      everybody_to_everybody(rank(), size(), std::as_bytes(std::span(&mine, 1)), arriving);
  question.signature = signature;
  question.label = kQuestion;
  CommunicatorWrapper::exchange(question);
  sent_ += static_cast<Index>(sizeof mine) * (size() - 1);
  if (std::any_of(all.begin(), all.end(), [mine](std::uint64_t other) { return other != mine; })) {
    throw collective_mismatch("their fingerprints differ");
  }
}

}  // namespace zerolab
