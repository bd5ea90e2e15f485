#pragma once

#include <memory>
#include <string>

#include "stages/model/layers.hpp"
#include "tests/support/trainings.hpp"

namespace zerolab::test {

// Links of a chain (tests/support/chain.hpp), with weights that are large enough to matter.

inline std::shared_ptr<Embedding> embedding(ParameterSet& parameters, Index vocabulary,
                                            Index width) {
  return std::make_shared<Embedding>(parameters, "embedding", vocabulary, width,
                                     Initial::normal(1));
}

inline std::shared_ptr<Linear> linear(ParameterSet& parameters, const std::string& name, Index in,
                                      Index out) {
  return std::make_shared<Linear>(parameters, name, in, out, Initial::normal(0.5));
}

/// The same training by plain gradient descent without clipping: an update is then the gradient
/// times the learning rate, and what is wrong with one shows in the other.
inline Training plain(Training training, float learning_rate = 0.1F) {
  training.settings.gradient_clipping = 0;
  training.settings.optimizer = {};
  training.settings.optimizer.type = OptimizerSettings::Type::sgd;
  training.settings.optimizer.learning_rate = learning_rate;
  return training;
}

}  // namespace zerolab::test
