#pragma once

#include <vector>

#include "stages/engine/training.hpp"

namespace zerolab::test {

/// Values of all parameters, put together from what the ranks own: [parameter][element].
using Weights = std::vector<std::vector<float>>;

/// The weights a training started from and those behind its latest update.
struct WeightHistory {
  Weights initial, latest;
};

/// The same training, which beside that fills `history`. It must outlive every run and hold no
/// result of another; elements that no rank owned stay NaN.
Training with_history(Training training, WeightHistory& history);

}  // namespace zerolab::test
