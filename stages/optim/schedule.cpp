#include "stages/optim/schedule.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace zerolab {
namespace {

double between(double low, double high, double share) { return low + (high - low) * share; }

// 0 at the first step; the steps of the warm-up end before it would be 1.
double warmth(const ScheduleSettings& settings, double steps, double k) {
  return settings.warmup_type == ScheduleSettings::WarmupType::linear
             ? k / steps
             : std::log(k + 1) / std::log(steps);
}

}  // namespace

float scheduled_learning_rate(const ScheduleSettings& settings, float optimizer_learning_rate,
                              Index steps_done) {
  using Type = ScheduleSettings::Type;
  if (settings.type == Type::constant) return optimizer_learning_rate;
  const double base = optimizer_learning_rate;
  const auto k = static_cast<double>(steps_done);
  const auto warmup = static_cast<double>(std::max<Index>(2, settings.warmup_num_steps));
  const auto total = static_cast<double>(settings.total_num_steps);
  const bool cosine = settings.type == Type::warmup_cosine;
  const double low = cosine ? base * settings.warmup_min_ratio : settings.warmup_min_lr;
  const double high = cosine ? base : settings.warmup_max_lr.value_or(optimizer_learning_rate);
  const auto rate = [&] {
    if (k < warmup) return between(low, high, warmth(settings, warmup, k));
    const double rest = std::max(1.0, total - warmup);
    switch (settings.type) {
      case Type::warmup_decay:
        return between(low, high, std::max(0.0, (total - k) / rest));
      case Type::warmup_cosine: {
        const double progress = std::min(1.0, (k - warmup + 1) / rest);
        return between(base * settings.cos_min_ratio, base,
                       (1 + std::cos(std::numbers::pi * progress)) / 2);
      }
      default:
        return high;
    }
  };
  return static_cast<float>(rate());
}

}  // namespace zerolab
