#pragma once

#include <functional>

#include "stages/engine/training.hpp"

namespace zerolab::test {

/// The value of an element of a parameter.
using WeightRule = std::function<float(const Parameter& parameter, Index element)>;

/// The same training, which starts from these weights instead of random ones.
Training with_weights(Training training, const WeightRule& values);

}  // namespace zerolab::test
