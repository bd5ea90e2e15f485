#include "tests/device/support.hpp"
#include "tests/support/catch.hpp"

using namespace zerolab;
using namespace zerolab::test;

namespace {

// Weights near 1, three steps: a few dozen roundings of values near 1.
constexpr double kAllowed = 64 * kRounding;

struct AdamState {
  Doubles weight, moment1, moment2;
};

// Algorithm 1 of Kingma and Ba, with the decay of Loshchilov and Hutter if it is decoupled.
void adam_reference(int t, double rate, double decay, bool decoupled, double factor,
                    const Doubles& gradient, AdamState& s) {
  for (std::size_t i = 0; i < gradient.size(); ++i) {
    double g = gradient[i] * factor;
    if (!decoupled) g += decay * s.weight[i];
    s.moment1[i] = 0.9 * s.moment1[i] + 0.1 * g;
    s.moment2[i] = 0.999 * s.moment2[i] + 0.001 * g * g;
    const double m = s.moment1[i] / (1 - std::pow(0.9, t));
    const double v = s.moment2[i] / (1 - std::pow(0.999, t));
    const double decayed = decoupled ? decay * s.weight[i] : 0.0;
    s.weight[i] -= rate * (m / (std::sqrt(v) + 1e-8) + decayed);
  }
}

}  // namespace

TEST_CASE("Adam and AdamW follow their papers") {
  CpuBench bench;
  for (const bool decoupled : {true, false}) {
    for (const Index n : {0, 1, 3, 5, 33}) {
      Floats weight = random_floats(n, 1), moment1(at(n)), moment2(at(n));
      AdamState want{widened(weight), widened(moment1), widened(moment2)};
      for (int t = 1; t <= 3; ++t) {
        const Floats gradient = random_floats(n, static_cast<std::uint64_t>(t) + 1);
        AdamUpdate update{0.01F, 0.9F, 0.999F, 1e-8F, 0.1F, decoupled};
        update.correction1 = static_cast<float>(1 - std::pow(0.9, t));
        update.correction2 = static_cast<float>(1 - std::pow(0.999, t));
        update.gradient_factor = 0.5F;
        bench.device.adam(update, n, gradient.data(), weight.data(), moment1.data(),
                          moment2.data());
        adam_reference(t, 0.01, 0.1, decoupled, 0.5, widened(gradient), want);
      }
      INFO("n " << n << (decoupled ? " AdamW" : " Adam"));
      // 1 - 0.999F is off by 2^-24 / 0.001 = 6e-5 from a thousandth: that is the type's, not the
      // loop's, and moves moment2 by as much, but weights only by the rate times half of that.
      CHECK(worst_error(weight, want.weight, kAllowed) <= 1);
      CHECK(worst_error(moment1, want.moment1, kAllowed) <= 1);
      CHECK(worst_error(moment2, want.moment2, 1e-4 * 0.003 * 16) <= 1);
    }
  }
}

TEST_CASE("SGD follows its definition, with and without momentum") {
  CpuBench bench;
  for (const Index n : {0, 1, 3, 5, 33}) {
    Floats plain = random_floats(n, 1), heavy = plain;
    Floats momentum(at(n), std::numeric_limits<float>::quiet_NaN());  // not read the first time
    Doubles want_plain = widened(plain), want_heavy = want_plain, velocity(at(n));
    for (std::uint64_t t = 1; t <= 3; ++t) {
      const Floats gradient = random_floats(n, t + 1);
      bench.device.sgd({0.1F, 0.0F, 0.01F, t == 1, 0.5F}, n, gradient.data(), plain.data(),
                       nullptr);
      bench.device.sgd({0.1F, 0.9F, 0.01F, t == 1, 0.5F}, n, gradient.data(), heavy.data(),
                       momentum.data());
      for (std::size_t i = 0; i < gradient.size(); ++i) {
        const double g = static_cast<double>(gradient[i]) * 0.5;
        want_plain[i] -= 0.1 * (g + 0.01 * want_plain[i]);
        velocity[i] = 0.9 * velocity[i] + g + 0.01 * want_heavy[i];
        want_heavy[i] -= 0.1 * velocity[i];
      }
    }
    CHECK(worst_error(plain, want_plain, kAllowed) <= 1);
    CHECK(worst_error(heavy, want_heavy, kAllowed) <= 1);
    CHECK(worst_error(momentum, velocity, 4 * kAllowed) <= 1);
  }
}
