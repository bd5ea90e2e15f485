#pragma once

#include <cmath>

#include "stages/base/host_device.hpp"
#include "stages/device/device.hpp"

namespace zerolab {

/// One element of Adam (Kingma, Ba, ICLR 2015, algorithm 1) or AdamW (Loshchilov, Hutter, ICLR
/// 2019, algorithm 2).
ZEROLAB_HOST_DEVICE inline void adam_element(const AdamUpdate& u, float gradient, float& weight,
                                             float& moment1, float& moment2) {
  float g = gradient * u.gradient_factor;
  if (!u.decoupled) g = g + u.weight_decay * weight;
  moment1 = u.beta1 * moment1 + (1.0F - u.beta1) * g;
  moment2 = u.beta2 * moment2 + (1.0F - u.beta2) * (g * g);
  const float denominator = std::sqrt(moment2 / u.correction2) + u.epsilon;
  float step = (moment1 / u.correction1) / denominator;
  if (u.decoupled) step = step + u.weight_decay * weight;
  weight = weight - u.learning_rate * step;
}

/// One element of SGD with momentum, as PyTorch has it (no dampening, no Nesterov).
ZEROLAB_HOST_DEVICE inline void sgd_element(const SgdUpdate& u, float gradient, float& weight,
                                            float* momentum) {
  float step = gradient * u.gradient_factor + u.weight_decay * weight;
  if (momentum != nullptr) {
    step = u.first ? step : u.momentum * *momentum + step;
    *momentum = step;
  }
  weight = weight - u.learning_rate * step;
}

}  // namespace zerolab
