#include "stages/optim/loss_scaler.hpp"

#include <algorithm>
#include <cmath>

namespace zerolab {

LossScaler::LossScaler(const LossScaleSettings& settings)
    : settings_(settings),
      dynamic_(settings.loss_scale == 0),
      state_{dynamic_ ? std::ldexp(1.0, settings.initial_scale_power) : settings.loss_scale,
             settings.hysteresis - 1, 0} {}

bool LossScaler::update(bool overflow) {
  if (!dynamic_) return true;
  auto& [scale, forgiven, good_steps] = state_;
  if (overflow) {
    good_steps = 0;
    if (forgiven > 0) {
      --forgiven;
      return true;
    }
    if (scale <= settings_.min_loss_scale) return false;
    scale = std::max(scale / 2, settings_.min_loss_scale);
    return true;
  }
  const bool grows = good_steps > 0 && good_steps % settings_.loss_scale_window == 0;
  ++good_steps;
  if (grows) scale *= 2;
  if (grows || settings_.consecutive_hysteresis) forgiven = settings_.hysteresis - 1;
  return true;
}

}  // namespace zerolab
