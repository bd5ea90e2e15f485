#pragma once

#include <vector>

#include "stages/engine/training.hpp"

namespace zerolab::test {

/// Values of all parameters, put together from what the ranks own: [parameter][element].
using Weights = std::vector<std::vector<float>>;

/// The weights a training started from, those behind its latest update, and the mean gradient over
/// ranks and micro-steps that this update was made with.
struct WeightHistory {
  Weights initial, latest, gradient;
};

/// The same training, which beside that fills `history`. It must outlive every run and hold no
/// result of another; elements that no rank owned stay NaN.
Training with_history(Training training, WeightHistory& history);

/// The largest |got - want| over all elements, relative to the largest |want|; infinite where one
/// is NaN or the shapes differ.
double largest_difference(const Weights& got, const Weights& want);

}  // namespace zerolab::test
