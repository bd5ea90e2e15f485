#pragma once

#include "stages/device/device.hpp"
#include "stages/optim/owned_slice.hpp"

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

/// How many tensors of the size of the master weights the optimizer keeps: Adam 2, SGD with
/// momentum 1, SGD 0.
int moments_needed(const OptimizerSettings& settings);

/// One optimizer step on one slice: the master, and the weights that are rounded from it. `step`
/// counts from 1; `gradient_factor` is multiplied into the gradient (clipping, loss scale).
void update(Device& device, const OptimizerSettings& settings, Index step, float gradient_factor,
            const OwnedSlice& slice);

/// What the gradient is multiplied with so that its norm is at most `clipping`, as DeepSpeed has
/// it: 1 / max((norm + 1e-6) / clipping, 1). 1 when clipping is 0 (off).
double clip_factor(double norm, double clipping);

}  // namespace zerolab
