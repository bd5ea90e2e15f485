#pragma once

#include <array>
#include <vector>

#include "stages/model/parameter.hpp"
#include "stages/partition/layout.hpp"

namespace zerolab {

inline constexpr std::size_t kMostMoments = 2;

/// A part of a parameter that this rank updates: elements [range) of it, with the weights, the
/// reduced gradient, the fp32 master weights and the optimizer's moments of just these elements. In
/// fp32 the master is the weights themselves. A frozen parameter has weights only. Optimizer, norm,
/// hash and checkpoint see a model only as a list of these, whatever the stage.
struct OwnedSlice {
  Parameter* parameter = nullptr;
  Range range;
  Values weights = {};
  Values gradient = {};
  float* master = nullptr;
  std::array<float*, kMostMoments> moments = {};

  /// What the weights are rounded from, or themselves.
  ConstValues exact() const { return master != nullptr ? ConstValues(master) : weights; }
};

/// The rank-th of `ranks` nearly equal parts of the slices, in order: what a rank adds to a sum
/// over all ranks when every rank owns everything.
std::vector<OwnedSlice> share_of(const std::vector<OwnedSlice>& slices, int rank, int ranks);

}  // namespace zerolab
