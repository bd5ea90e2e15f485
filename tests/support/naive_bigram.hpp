#pragma once

#include <vector>

#include "tests/support/chain.hpp"
#include "tests/support/weight_history.hpp"

namespace zerolab::test {

/// The chain that NaiveBigram computes: embedding -> linear.
Chain bigram(Index vocabulary, Index width);

/// What predicts a token from the one before it, written down once more in double and without any
/// of the project's arithmetic: logits = W E[token] + b, mean cross-entropy, gradient descent.
class NaiveBigram {
 public:
  /// Starts from the weights {E, W, b} of the chain.
  NaiveBigram(const Weights& weights, Index vocabulary, Index width);

  /// One step over all samples; returns the loss before it.
  double step(const std::vector<std::int32_t>& tokens, const std::vector<std::int32_t>& targets,
              double learning_rate);

  Weights weights() const;
  /// Square root of the sum of squares of the latest gradient.
  double gradient_norm() const { return gradient_norm_; }

 private:
  std::size_t vocabulary_, width_;
  std::vector<std::vector<double>> values_;  // E [vocabulary, width], W [vocabulary, width], b
  double gradient_norm_ = 0;
};

}  // namespace zerolab::test
