#pragma once

#include "stages/base/types.hpp"

namespace zerolab {

/// The loss scale of `fp16` in the configuration: DeepSpeed's names and defaults.
struct LossScaleSettings {
  double loss_scale = 0;  // 0: dynamic
  int initial_scale_power = 16;
  Index loss_scale_window = 1000;
  Index hysteresis = 2;
  bool consecutive_hysteresis = false;
  double min_loss_scale = 1;
};

/// What the loss is multiplied with, so that small gradients do not become zero in 16 bits. The
/// gradient of a step is divided by the scale that its loss was multiplied with; only then comes
/// `update`, for the next step. (DeepSpeed updates first: on the step after which the scale doubles
/// its gradients are half of what they should be.)
///
/// Dynamic, as DeepSpeed has it: an overflow halves the scale, but the first `hysteresis` - 1 are
/// forgiven; `loss_scale_window` good steps and one more double it, and are forgiven anew.
class LossScaler {
 public:
  /// No scaling: the scale is 1 and stays.
  LossScaler() = default;
  explicit LossScaler(const LossScaleSettings& settings);

  double scale() const { return scale_; }
  bool dynamic() const { return dynamic_; }

  /// After a step. False if an overflow calls for a lower scale than the least there is.
  [[nodiscard]] bool update(bool overflow);

 private:
  LossScaleSettings settings_;
  bool dynamic_ = false;
  double scale_ = 1;
  Index forgiven_ = 0;    // overflows that are still to be forgiven
  Index good_steps_ = 0;  // since the last overflow
};

}  // namespace zerolab
