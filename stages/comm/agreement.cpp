#include "stages/comm/agreement.hpp"

#include <fmt/format.h>

#include <span>
#include <vector>

#include "stages/base/error.hpp"

namespace zerolab {
namespace {

using Json = nlohmann::ordered_json;

/// Everybody's text, by rank; texts may have different lengths.
std::vector<std::string> texts_of_all(Communicator& communicator, const std::string& mine) {
  const auto ranks = static_cast<std::size_t>(communicator.size());
  const auto swap = [&](const auto& of_mine, auto& of_all) {
    std::vector<std::span<std::byte>> arriving;
    arriving.reserve(ranks);
    for (auto& of_rank : of_all) arriving.push_back(std::as_writable_bytes(std::span(of_rank)));
    Exchange round = everybody_to_everybody(communicator.rank(), communicator.size(),
                                            std::as_bytes(std::span(of_mine)), arriving);
    round.signature = {.op = Op::control, .owner = "what the ranks were started with"};
    communicator.exchange(round);
  };
  const std::vector<std::size_t> length{mine.size()};
  std::vector<std::vector<std::size_t>> lengths(ranks, length);
  swap(length, lengths);
  std::vector<std::string> texts;
  texts.reserve(ranks);
  for (const auto& of_rank : lengths) texts.emplace_back(of_rank.front(), ' ');
  texts[static_cast<std::size_t>(communicator.rank())] = mine;
  swap(mine, texts);
  return texts;
}

std::vector<std::string> keys_of(const Json& one, const Json& other) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : one.items()) keys.push_back(key);
  for (const auto& [key, value] : other.items()) {
    if (!one.contains(key)) keys.push_back(key);
  }
  return keys;
}

std::string value_of(const Json& json, const std::string& key) {
  return json.contains(key) ? json[key].dump() : "nothing";
}

}  // namespace

void agree(Communicator& communicator, const Json& facts) {
  const std::vector<std::string> texts = texts_of_all(communicator, facts.dump());
  const Json first = Json::parse(texts.front());
  std::vector<std::string> differences;
  for (std::size_t rank = 1; rank < texts.size(); ++rank) {
    const Json other = Json::parse(texts[rank]);
    for (const std::string& key : keys_of(first, other)) {
      const std::string here = value_of(first, key);
      const std::string there = value_of(other, key);
      if (here == there) continue;
      differences.push_back(
          fmt::format("\n  {}: {} on rank 0, {} on rank {}", key, here, there, rank));
    }
  }
  if (differences.empty()) return;
  throw Error(Code::ranks_disagree,
              fmt::format("the ranks were not started alike{}", fmt::join(differences, "")),
              "start every rank with the same arguments, the same files and the same build");
}

}  // namespace zerolab
