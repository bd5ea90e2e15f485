#pragma once

#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "stages/base/types.hpp"

namespace zerolab {

/// `optimizer` in the configuration.
struct OptimizerSettings {
  enum class Type { adam, sgd };
  Type type = Type::adam;
  float learning_rate = 1e-3F;
  float beta1 = 0.9F, beta2 = 0.999F, epsilon = 1e-8F;  // Adam
  bool adam_w_mode = true;                              // "Adam" is AdamW unless this is false
  float momentum = 0;                                   // SGD
  float weight_decay = 0;
};

/// `zero_optimization` in the configuration. Sizes are in elements.
struct ZeroSettings {
  int stage = 0;
  bool overlap_comm = false;  // DeepSpeed: true in stage 3 when not given
  Index reduce_bucket_size = 500'000'000;
};

/// Everything that shapes a run beside the model, the data and the seed. Equal on every rank.
struct Settings {
  Index micro_batch = 1;  // train_micro_batch_size_per_gpu, sequences
  Index gradient_accumulation_steps = 1;
  double gradient_clipping = 1.0;  // global L2 norm; 0 is off
  OptimizerSettings optimizer;
  ZeroSettings zero;
};

}  // namespace zerolab
