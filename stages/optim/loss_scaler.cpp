#include "stages/optim/loss_scaler.hpp"

#include <algorithm>
#include <cmath>

namespace zerolab {

LossScaler::LossScaler(const LossScaleSettings& settings)
    : settings_(settings),
      dynamic_(settings.loss_scale == 0),
      scale_(dynamic_ ? std::ldexp(1.0, settings.initial_scale_power) : settings.loss_scale),
      forgiven_(settings.hysteresis - 1) {}

bool LossScaler::update(bool overflow) {
  if (!dynamic_) return true;
  if (overflow) {
    good_steps_ = 0;
    if (forgiven_ > 0) {
      --forgiven_;
      return true;
    }
    if (scale_ <= settings_.min_loss_scale) return false;
    scale_ = std::max(scale_ / 2, settings_.min_loss_scale);
    return true;
  }
  const bool grows = good_steps_ > 0 && good_steps_ % settings_.loss_scale_window == 0;
  ++good_steps_;
  if (grows) scale_ *= 2;
  if (grows || settings_.consecutive_hysteresis) forgiven_ = settings_.hysteresis - 1;
  return true;
}

}  // namespace zerolab
