#include "tests/device/reference.hpp"
#include "tests/support/catch.hpp"

using namespace zerolab;
using namespace zerolab::test;

namespace {
constexpr float kEpsilon = 1e-5F;
constexpr float kInfinity = std::numeric_limits<float>::infinity();
}  // namespace

TEST_CASE("layer norm is right to rounding, with its mean and variance") {
  CpuBench bench;
  for (const Index rows : {1, 3, 33}) {
    for (const Index width : {1, 3, 5, 33, 64, 100}) {
      const Floats x = random_floats(rows * width, 1, 2.0F);
      const Floats gamma = random_floats(width, 2), beta = random_floats(width, 3);
      Floats y(x.size()), mean(at(rows)), variance(at(rows));
      bench.device.layer_norm(rows, width, kEpsilon, x.data(), gamma.data(), beta.data(), y.data(),
                              mean.data(), variance.data());
      // A sum of `width` terms of at most 8 for x, 64 for its square; then a few operations. In
      // narrow rows the variance may be small, which magnifies the error of x - mean: at most 40
      // times in this data.
      const double allowed = kRounding * static_cast<double>(width + 8) * 8;
      INFO("rows " << rows << " width " << width);
      CHECK(worst_error(y, layer_norm(width, kEpsilon, widened(x), widened(gamma), widened(beta)),
                        40 * allowed) <= 1);
      for (Index row = 0; row < rows; ++row) {
        const Moments want = moments(widened(x), row, width);
        CHECK(std::abs(static_cast<double>(mean[at(row)]) - want.mean) <= allowed);
        CHECK(std::abs(static_cast<double>(variance[at(row)]) - want.variance) <= 8 * allowed);
      }
    }
  }
}

TEST_CASE("layer norm of nothing is nothing, and its weight gradients are zero") {
  CpuBench bench;
  Floats out(3, 7.0F), dgamma(3, 7.0F), dbeta(3, 7.0F);
  const Floats in(3, 1.0F);
  bench.device.layer_norm(0, 3, kEpsilon, in.data(), in.data(), in.data(), out.data(), out.data(),
                          out.data());
  bench.device.layer_norm_backward(0, 3, kEpsilon, in.data(), in.data(), in.data(), in.data(),
                                   in.data(), out.data(), dgamma.data(), dbeta.data());
  CHECK(out == Floats(3, 7.0F));
  CHECK(dgamma == Floats(3, 0.0F));
  CHECK(dbeta == Floats(3, 0.0F));
  Floats mean(3, 7.0F), variance(3, 7.0F);
  bench.device.layer_norm(3, 0, kEpsilon, nullptr, nullptr, nullptr, nullptr, mean.data(),
                          variance.data());
  CHECK(mean == Floats(3, 0.0F));
  CHECK(variance == Floats(3, 0.0F));
}

TEST_CASE("causal softmax is right to rounding, and exactly zero behind the diagonal") {
  CpuBench bench;
  for (const Index batch : {1, 3}) {
    for (const Index length : {1, 3, 5, 33, 64}) {
      Floats scores = random_floats(batch * length * length, 1, 4.0F);
      const Doubles want = causal_softmax(length, 0.25, widened(scores));
      bench.device.causal_softmax(batch, length, 0.25F, scores.data());
      Doubles allowed = want;  // exp of at most 16, a sum of `length`, a division
      for (double& x : allowed) x *= kRounding * static_cast<double>(length + 40);
      INFO("batch " << batch << " length " << length);
      CHECK(worst_error(scores, want, allowed) <= 1);
    }
  }
  bench.device.causal_softmax(0, 4, 1.0F, nullptr);
  bench.device.causal_softmax(4, 0, 1.0F, nullptr);
  bench.device.causal_softmax_backward(0, 4, 1.0F, nullptr, nullptr);
  bench.device.causal_softmax_backward(4, 0, 1.0F, nullptr, nullptr);
}

TEST_CASE("causal softmax survives scores whose exponentials overflow") {
  CpuBench bench;
  Floats scores{1e4F, 5.0F, 1e4F, 1e4F};
  bench.device.causal_softmax(1, 2, 1.0F, scores.data());
  CHECK(scores == Floats{1, 0, 0.5F, 0.5F});
  scores = {-3e38F, 3e38F, -3e38F, 3e38F};
  bench.device.causal_softmax(1, 2, 1.0F, scores.data());
  CHECK(scores == Floats{1, 0, 0, 1});
}

TEST_CASE("what lies behind the diagonal never matters") {
  CpuBench bench;
  Floats scores{1, kInfinity, 1, 1};
  bench.device.causal_softmax(1, 2, 1.0F, scores.data());
  CHECK(scores == Floats{1, 0, 0.5F, 0.5F});
  Floats dscores{1, kInfinity, 1, 3};
  bench.device.causal_softmax_backward(1, 2, 2.0F, scores.data(), dscores.data());
  CHECK(dscores == Floats{0, 0, -1, 1});
}

TEST_CASE("GELU is right to rounding, far out too") {
  CpuBench bench;
  for (const Index n : {1, 3, 5, 33, 2048, 2049, 5000}) {
    const Floats x = random_floats(n, 1, 3.0F);
    Floats y(x.size());
    bench.device.gelu(n, x.data(), y.data());
    const Doubles want = gelu(widened(x));
    // The gate is an exponential of 2u = 1.6 (x + 0.045 x^3), so a rounding of that counts |2u|
    // times; the rest is 20 at most (oneDNN's exp). The reference cancels at 1e-16.
    Doubles allowed(want.size());
    for (std::size_t i = 0; i < want.size(); ++i) {
      const double wide = std::abs(static_cast<double>(x[i]));
      const double exponent = 1.6 * (wide + 0.045 * wide * wide * wide);
      allowed[i] = kRounding * std::abs(want[i]) * (20 + 4 * exponent) + 1e-15;
    }
    INFO("n " << n);
    CHECK(worst_error(y, want, allowed) <= 1);
  }
  const Floats far{-1e5F, -30, 0, 30, 1e5F}, one(5, 1.0F);
  Floats y(5), dx(5);
  bench.device.gelu(5, far.data(), y.data());
  bench.device.gelu_backward(5, far.data(), one.data(), dx.data());
  CHECK(y == Floats{0, 0, 0, 30, 1e5F});
  CHECK(dx == Floats{0, 0, 0.5F, 1, 1});
  bench.device.gelu(0, nullptr, nullptr);
  bench.device.gelu_backward(0, nullptr, nullptr, nullptr);
}

TEST_CASE("embedding copies rows, and its backward adds them in the order of the tokens") {
  CpuBench bench;
  for (const Index width : {1, 3, 5, 33}) {
    const Floats table = random_floats(9 * width, 1);
    const auto tokens = random_tokens(20, 9, 2);
    Floats out(at(20 * width));
    bench.device.embedding(20, width, tokens.data(), table.data(), out.data());
    CHECK(widened(out) == embedding(width, tokens, widened(table)));
  }
  const std::vector<std::int32_t> tokens{2, 0, 2, 2, 2};
  const Floats dout{1, 5, 0x1p24F, -0x1p24F, 1};
  Floats dtable(3, 7.0F);
  bench.device.embedding_backward(5, 1, 3, tokens.data(), dout.data(), dtable.data());
  CHECK(dtable == Floats{5, 0, 1});
  bench.device.embedding_backward(0, 1, 3, nullptr, nullptr, dtable.data());
  CHECK(dtable == Floats{0, 0, 0});
  bench.device.embedding(0, 3, nullptr, nullptr, nullptr);
}

TEST_CASE("cross entropy leaves log-probabilities and returns their sum") {
  CpuBench bench;
  for (const Index rows : {1, 3, 33}) {
    for (const Index classes : {1, 3, 5, 33, 256}) {
      Floats logits = random_floats(rows * classes, 1, 3.0F);
      const auto targets = random_tokens(rows, classes, 2);
      const Doubles want = log_softmax(classes, widened(logits));
      const double loss = cross_entropy(classes, targets, widened(logits));
      const double got = bench.device.cross_entropy(rows, classes, targets.data(), logits.data());
      // Two subtractions with results up to 32 and a sum of `classes` terms; oneDNN promises
      // nothing for its exp and log, together 100 roundings with SSE4.1 at worst, as measured.
      const double allowed = kRounding * static_cast<double>(classes + 32 + 100);
      INFO("rows " << rows << " classes " << classes);
      CHECK(worst_error(logits, want, allowed) <= 1);
      CHECK(std::abs(got - loss) <= allowed * static_cast<double>(rows));
    }
  }
  CHECK(bench.device.cross_entropy(0, 5, nullptr, nullptr) == 0);
  bench.device.cross_entropy_backward(0, 5, 1.0F, nullptr, nullptr);
}

TEST_CASE("cross entropy survives logits whose exponentials overflow") {
  CpuBench bench;
  Floats logits{1e4F, 1e4F, -1e4F};
  const std::vector<std::int32_t> target{2};
  const double loss = bench.device.cross_entropy(1, 3, target.data(), logits.data());
  CHECK(std::abs(loss - 20000 - std::log(2)) <= 0.01);
  bench.device.cross_entropy_backward(1, 3, 2.0F, target.data(), logits.data());
  CHECK(worst_error(logits, {1, 1, -2}, 64 * kRounding) <= 1);
}
