#include "stages/optim/optimizer.hpp"

#include "tests/device/support.hpp"
#include "tests/support/catch.hpp"

namespace zerolab::test {
namespace {

using Type = OptimizerSettings::Type;

constexpr Index kSteps = 20;
constexpr float kFactor = 0.75F;

/// One rank's state of one parameter.
struct State {
  Floats weight, moment1, moment2;
};
struct WideState {
  Doubles weight, moment1, moment2;
};

// The papers' formulas. The settings are the float ones, widened: their rounding is no mistake of
// the optimizer's.
void adam_step(const OptimizerSettings& s, int step, const Doubles& gradient, WideState& state) {
  const double beta1 = s.beta1, beta2 = s.beta2;
  for (std::size_t i = 0; i < gradient.size(); ++i) {
    double& w = state.weight[i];
    const double g = kFactor * gradient[i] + (s.adam_w_mode ? 0 : s.weight_decay * w);
    state.moment1[i] = beta1 * state.moment1[i] + (1 - beta1) * g;
    state.moment2[i] = beta2 * state.moment2[i] + (1 - beta2) * g * g;
    const double mean = state.moment1[i] / (1 - std::pow(beta1, step));
    const double square = state.moment2[i] / (1 - std::pow(beta2, step));
    const double decay = s.adam_w_mode ? s.weight_decay * w : 0;
    w -= s.learning_rate * (mean / (std::sqrt(square) + s.epsilon) + decay);
  }
}

void sgd_step(const OptimizerSettings& s, const Doubles& gradient, WideState& state) {
  for (std::size_t i = 0; i < gradient.size(); ++i) {
    double& velocity = state.moment1[i];
    velocity = s.momentum * velocity + kFactor * gradient[i] + s.weight_decay * state.weight[i];
    state.weight[i] -= s.learning_rate * velocity;
  }
}

/// The largest departure of the weights from float64 over twenty steps, in roundings of 1.
double worst_departure(const OptimizerSettings& settings) {
  CpuBench bench;
  constexpr Index kElements = 33;
  State state{random_floats(kElements, 1), Floats(kElements), Floats(kElements)};
  WideState want{widened(state.weight), Doubles(kElements), Doubles(kElements)};
  double worst = 0;
  for (int step = 1; step <= kSteps; ++step) {
    Floats gradient = random_floats(kElements, 100 + static_cast<std::uint64_t>(step));
    const OwnedSlice slice{
        nullptr,         {0, kElements},      state.weight.data(),
        gradient.data(), state.weight.data(), {state.moment1.data(), state.moment2.data()}};
    update(bench.device, settings, step, kFactor, slice);
    if (settings.type == Type::adam) {
      adam_step(settings, step, widened(gradient), want);
    } else {
      sgd_step(settings, widened(gradient), want);
    }
    worst = std::max(worst, worst_error(state.weight, want.weight, kRounding));
  }
  return worst;
}

OptimizerSettings settings_of(Type type) {
  OptimizerSettings settings;
  settings.type = type;
  settings.learning_rate = 0.01F;
  settings.weight_decay = 0.1F;
  return settings;
}

// Weights of at most 4, two roundings of theirs in each of twenty steps.
constexpr double kAllowed = 4 * 2 * kSteps;

TEST_CASE("AdamW and Adam with L2 decay follow float64 over twenty steps", "[optim]") {
  OptimizerSettings settings = settings_of(Type::adam);
  for (const bool decoupled : {true, false}) {
    settings.adam_w_mode = decoupled;
    CHECK(moments_needed(settings) == 2);
    CHECK(worst_departure(settings) <= kAllowed);
  }
}

TEST_CASE("SGD follows float64 over twenty steps, with and without momentum", "[optim]") {
  OptimizerSettings settings = settings_of(Type::sgd);
  for (const float momentum : {0.0F, 0.9F}) {
    settings.momentum = momentum;
    CHECK(moments_needed(settings) == (momentum > 0 ? 1 : 0));
    CHECK(worst_departure(settings) <= kAllowed);
  }
}

TEST_CASE("clipping leaves small gradients alone and brings large ones down to the limit",
          "[optim]") {
  CHECK(clip_factor(1e30, 0) == 1);  // off
  CHECK(clip_factor(0, 1) == 1);
  CHECK(clip_factor(0.5, 1) == 1);
  CHECK(clip_factor(1.5, 2) == 1);
  CHECK(static_cast<float>(clip_factor(4, 1)) == static_cast<float>(1 / 4.000001));
  CHECK(static_cast<float>(clip_factor(4, 2)) == static_cast<float>(2 / 4.000001));
  // exactly at the limit the millionth decides
  CHECK(static_cast<float>(clip_factor(1, 1)) == static_cast<float>(1 / 1.000001));
  CHECK(clip_factor(1 - 1e-6, 1) == 1);
}

}  // namespace
}  // namespace zerolab::test
