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

  /// What a scaler has come to, for checkpoints.
  struct State {
    double scale = 1;
    Index forgiven = 0;    // overflows that are still to be forgiven
    Index good_steps = 0;  // since the last overflow
    bool operator==(const State&) const = default;
  };
  const State& state() const { return state_; }
  /// Goes on from there; a scale that does not change stays the one of the settings.
  void resume(const State& state) {
    if (dynamic_) state_ = state;
  }

  double scale() const { return state_.scale; }
  bool dynamic() const { return dynamic_; }

  /// After a step. False if an overflow calls for a lower scale than the least there is.
  [[nodiscard]] bool update(bool overflow);

 private:
  LossScaleSettings settings_;
  bool dynamic_ = false;
  State state_;
};

}  // namespace zerolab
