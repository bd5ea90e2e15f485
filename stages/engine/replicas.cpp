#include "stages/engine/replicas.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstring>

#include "stages/base/error.hpp"

namespace zerolab {

std::vector<std::uint64_t> hashes_of(Runtime& runtime, const std::vector<Parameter*>& parameters) {
  std::vector<std::uint64_t> result;
  result.reserve(parameters.size());
  for (const Parameter* parameter : parameters) {
    result.push_back(runtime.device.hash(static_cast<std::uint64_t>(parameter->id()), 0,
                                         parameter->data, parameter->numel()));
  }
  return result;
}

std::string ranks_where(Runtime& runtime, const std::vector<Parameter*>& parameters,
                        const std::vector<std::uint64_t>& numbers, std::string_view preposition,
                        const std::function<bool(std::uint64_t, std::uint64_t)>& wrong) {
  if (parameters.empty()) return {};
  const auto all = share(runtime.comm, std::as_bytes(std::span(numbers)), "hashes of parameters");
  const auto number_of = [&all](std::size_t rank, std::size_t i) {
    std::uint64_t number = 0;
    std::memcpy(&number, all[rank].data() + i * sizeof(number), sizeof(number));
    return number;
  };
  std::string lines;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    std::vector<std::size_t> ranks;
    for (std::size_t rank = 0; rank < all.size(); ++rank) {
      if (wrong(number_of(rank, i), number_of(0, i))) ranks.push_back(rank);
    }
    if (ranks.empty()) continue;
    lines += fmt::format("\n  '{}' {} rank {}", parameters[i]->name(), preposition,
                         fmt::join(ranks, ", "));
  }
  return lines;
}

void check_replicas(Runtime& runtime, ParameterSet& parameters, Index step) {
  std::vector<Parameter*> whole;
  for (Parameter& parameter : parameters) {
    if (parameter.status() == Status::available) whole.push_back(&parameter);
  }
  const std::string differing =
      ranks_where(runtime, whole, hashes_of(runtime, whole), "on", std::not_equal_to<>());
  if (differing.empty()) return;
  throw Error(
      Code::replicas_differ,
      fmt::format("before step {} copies of parameters differ from rank 0's:{}", step, differing),
      "write weights in a GatheredParameters scope that names the rank whose values count");
}

}  // namespace zerolab
