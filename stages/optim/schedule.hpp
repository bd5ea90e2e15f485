#pragma once

#include <optional>

#include "stages/base/types.hpp"

namespace zerolab {

/// `scheduler` in the configuration: how the learning rate goes from step to step. DeepSpeed's
/// names, defaults and formulas.
struct ScheduleSettings {
  enum class Type { constant, warmup, warmup_decay, warmup_cosine };
  enum class WarmupType { log, linear };
  Type type = Type::constant;
  WarmupType warmup_type = WarmupType::log;
  Index warmup_num_steps = 1000;
  Index total_num_steps = 0;  // WarmupDecayLR, WarmupCosineLR: where it has come down
  // WarmupLR, WarmupDecayLR
  float warmup_min_lr = 0;
  std::optional<float> warmup_max_lr = {};  // the optimizer's learning rate unless given
  // WarmupCosineLR, relative to the optimizer's learning rate
  float warmup_min_ratio = 0, cos_min_ratio = 1e-4F;
};

/// The learning rate of the step that follows `steps_done` steps. With n warm-up steps (at least
/// 2), and up to them w = ln(k + 1) / ln(n), or k / n where warmup_type is linear:
///
///   WarmupLR        min + (max - min) w, then max
///   WarmupDecayLR   the same, then min + (max - min) (total - k) / (total - n), at least min
///   WarmupCosineLR  lr (r + (1 - r) w), then lr (c + (1 - c) (1 + cos(pi p)) / 2) with
///                   p = (k - n + 1) / (total - n), at most 1
float scheduled_learning_rate(const ScheduleSettings& settings, float optimizer_learning_rate,
                              Index steps_done);

}  // namespace zerolab
