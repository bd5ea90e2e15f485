#include "stages/engine/model_state_memory.hpp"

#include <algorithm>
#include <numeric>

#include "stages/optim/optimizer.hpp"
#include "stages/partition/layout.hpp"

namespace zerolab {
namespace {

constexpr int kLastStage = 3;
constexpr Index kFewestElements = 64;  // that it makes sense to give a rank

Index pieces(const std::vector<Index>& sizes, Index ranks) {
  Index sum = 0;
  for (const Index size : sizes) sum += ceil_div(size, ranks);
  return sum;
}

// What somebody who has got so far has taken.
Index sum_of_first(const std::vector<Index>& bytes, std::size_t count) {
  return std::accumulate(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(count),
                         Index{0});
}

}  // namespace

std::vector<Index> model_state_bytes(const ParameterSet& parameters, const Settings& settings,
                                     int stage, Index ranks) {
  const FlatLayout flat(parameters.trainable_sizes(), static_cast<int>(ranks));
  const bool by_pieces = stage == 3;
  const Index whole = flat.padded();
  const Index part = by_pieces ? pieces(parameters.trainable_sizes(), ranks) : flat.slice_size();
  const Index frozen = parameters.numel() - parameters.trainable_numel();

  std::vector<Index> bytes;
  bytes.push_back((by_pieces ? pieces(parameters.sizes(), ranks) : whole) *
                  size_of(settings.dtype));
  bytes.push_back((stage >= 2 ? part : whole) * size_of(settings.accumulation_dtype()));
  const int states = moments_needed(settings.optimizer) + (settings.dtype == Dtype::fp32 ? 0 : 1);
  for (int i = 0; i < states; ++i) {
    bytes.push_back((stage >= 1 ? part : whole) * size_of(Dtype::fp32));
  }
  bytes.push_back(by_pieces ? 0 : frozen * size_of(settings.dtype));
  return bytes;
}

std::vector<Setting> ModelStateMemory::settings() const {
  const Index most_ranks = std::max(Index{ranks_}, parameters_.numel() / kFewestElements);
  return {
      {.name = "world_size", .value = ranks_, .extreme = most_ranks},
      {.name = "zero_optimization.stage", .value = settings_.zero.stage, .extreme = kLastStage}};
}

Index ModelStateMemory::bytes_at(std::size_t index, Index value, const Held& held) const {
  if (recorder_.phase() != Phase::set_up) return held.bytes;
  const int stage = settings_.zero.stage;
  const std::vector<Index> now = model_state_bytes(parameters_, settings_, stage, ranks_);
  const std::vector<Index> then =
      index == 0 ? model_state_bytes(parameters_, settings_, stage, value)
                 : model_state_bytes(parameters_, settings_, static_cast<int>(value), ranks_);
  for (std::size_t count = now.size(); count > 0; --count) {
    if (sum_of_first(now, count) == held.bytes) return sum_of_first(then, count);
  }
  return held.bytes;  // a stage that holds other things
}

}  // namespace zerolab
