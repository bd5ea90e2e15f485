#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "tests/support/described_model.hpp"

// A described model and its training once more, in plain double and by one process: every formula
// is written from its definition and nothing of zerolab's is used.

namespace zerolab::test {

/// Fills `count` sequences, from this position of the global batch of `step`, with tokens and
/// targets.
using PlainBatches =
    std::function<void(std::int64_t step, std::int64_t position, std::int64_t count,
                       std::int64_t length, std::int32_t* tokens, std::int32_t* targets)>;

/// Elements by the parameter's full name ("norm.weight"), row by row.
using NamedWeights = std::map<std::string, std::vector<double>>;

struct PlainTraining {
  std::int64_t micro_batch = 1, sequence_length = 1, ranks = 1, micro_steps = 1, steps = 1;
  double learning_rate = 0, weight_decay = 0;
  double clipping = 0;  // 0: off
  PlainBatches batches = {};
};

struct PlainStep {
  double loss, gradient_norm;  // the norm is that before clipping
};

struct PlainResult {
  std::vector<PlainStep> steps;
  NamedWeights weights;
  NamedWeights gradients;  // of the last step, before clipping; none of a frozen parameter
};

/// Gradient descent, steps 1 to training.steps. A step's loss and gradient are the means over its
/// micro-batches: that of micro-step g and rank r begins at (g * ranks + r) * micro_batch.
/// std::logic_error, with the parameter's name, if the initial weights are not those of the model.
PlainResult train_plainly(const DescribedModel& model, const NamedWeights& initial,
                          const PlainTraining& training);

struct PlainGradients {
  double loss = 0;
  NamedWeights gradients = {};  // zeros of an unused parameter, none of a frozen one
};

/// Loss and gradients of one micro-batch: the mean over its rows, a row for every token.
PlainGradients differentiate_plainly(const DescribedModel& model, const NamedWeights& weights,
                                     std::int64_t step, const std::vector<std::int32_t>& tokens,
                                     const std::vector<std::int32_t>& targets);

}  // namespace zerolab::test
