#include "stages/optim/optimizer.hpp"

#include <algorithm>
#include <cmath>

namespace zerolab {
namespace {

// 1 - beta^t; the decay is rounded to float once, as the moments see it.
float bias_correction(float beta, Index step) {
  return static_cast<float>(1.0 - std::pow(static_cast<double>(beta), static_cast<double>(step)));
}

}  // namespace

int moments_needed(const OptimizerSettings& settings) {
  if (settings.type == OptimizerSettings::Type::adam) return 2;
  return settings.momentum != 0 ? 1 : 0;
}

void update(Device& device, const OptimizerSettings& settings, Index step, float gradient_factor,
            const OwnedSlice& slice) {
  if (settings.type == OptimizerSettings::Type::adam) {
    device.adam({.learning_rate = settings.learning_rate,
                 .beta1 = settings.beta1,
                 .beta2 = settings.beta2,
                 .epsilon = settings.epsilon,
                 .weight_decay = settings.weight_decay,
                 .decoupled = settings.adam_w_mode,
                 .correction1 = bias_correction(settings.beta1, step),
                 .correction2 = bias_correction(settings.beta2, step),
                 .gradient_factor = gradient_factor},
                slice.range.size(), slice.gradient, slice.master, slice.moments[0],
                slice.moments[1]);
  } else {
    device.sgd({.learning_rate = settings.learning_rate,
                .momentum = settings.momentum,
                .weight_decay = settings.weight_decay,
                .first = step == 1,
                .gradient_factor = gradient_factor},
               slice.range.size(), slice.gradient, slice.master, slice.moments[0]);
  }
  if (slice.weights.data() != slice.master) {
    device.copy(slice.weights, slice.master, slice.range.size());
  }
}

double clip_factor(double norm, double clipping) {
  if (clipping == 0) return 1;
  return 1.0 / std::max((norm + 1e-6) / clipping, 1.0);
}

}  // namespace zerolab
