#include "tests/device/reference.hpp"
#include "tests/support/catch.hpp"

// Every backward against finite differences of the float64 reference: with a random vector d, the
// gradient of dot(d, f(x)) is what backward returns for dy = d.

using namespace zerolab;
using namespace zerolab::test;

namespace {

constexpr float kEpsilon = 1e-5F;

// Gradients here are sums of up to 40 products of values below 8; what finite differences add is
// far smaller.
constexpr double kAllowed = 40 * 8 * kRounding;

}  // namespace

TEST_CASE("the backward of layer norm agrees with finite differences") {
  CpuBench bench;
  for (const auto& [rows, width] : {std::pair<Index, Index>{1, 5}, {3, 33}, {7, 16}, {5, 3}}) {
    const Floats x = random_floats(rows * width, 1), gamma = random_floats(width, 2),
                 beta = random_floats(width, 3), dy = random_floats(rows * width, 4);
    Floats y(x.size()), mean(at(rows)), variance(at(rows));
    Floats dx(x.size()), dgamma(gamma.size(), 7.0F), dbeta(beta.size(), 7.0F);
    bench.device.layer_norm(rows, width, kEpsilon, x.data(), gamma.data(), beta.data(), y.data(),
                            mean.data(), variance.data());
    bench.device.layer_norm_backward(rows, width, kEpsilon, x.data(), gamma.data(), mean.data(),
                                     variance.data(), dy.data(), dx.data(), dgamma.data(),
                                     dbeta.data());
    const auto loss = [&, w = width](const Doubles& xs, const Doubles& gammas,
                                     const Doubles& betas) {
      return dot(widened(dy), layer_norm(w, kEpsilon, xs, gammas, betas));
    };
    const Doubles x64 = widened(x), gamma64 = widened(gamma), beta64 = widened(beta);
    INFO("rows " << rows << " width " << width);
    // Rows of three may have a small deviation, which divides the gradient's error too.
    CHECK(worst_error(
              dx, differentiate([&](const Doubles& v) { return loss(v, gamma64, beta64); }, x64),
              4 * kAllowed) <= 1);
    CHECK(
        worst_error(dgamma,
                    differentiate([&](const Doubles& v) { return loss(x64, v, beta64); }, gamma64),
                    kAllowed) <= 1);
    CHECK(worst_error(
              dbeta, differentiate([&](const Doubles& v) { return loss(x64, gamma64, v); }, beta64),
              kAllowed) <= 1);
  }
}

TEST_CASE("the backward of causal softmax agrees with finite differences") {
  CpuBench bench;
  for (const Index length : {1, 3, 5, 19}) {
    const Index n = 2 * length * length;
    const Floats scores = random_floats(n, 1, 2.0F), d = random_floats(n, 2);
    Floats probabilities = scores, dscores = d;
    bench.device.causal_softmax(2, length, 0.5F, probabilities.data());
    bench.device.causal_softmax_backward(2, length, 0.5F, probabilities.data(), dscores.data());
    const auto loss = [&](const Doubles& v) {
      return dot(widened(d), causal_softmax(length, 0.5, v));
    };
    INFO("length " << length);
    CHECK(worst_error(dscores, differentiate(loss, widened(scores)), kAllowed) <= 1);
  }
}

TEST_CASE("the backward of GELU agrees with finite differences") {
  CpuBench bench;
  const Floats x = random_floats(100, 1, 2.0F), dy = random_floats(100, 2);
  Floats dx(100);
  bench.device.gelu_backward(100, x.data(), dy.data(), dx.data());
  const auto loss = [&](const Doubles& v) { return dot(widened(dy), gelu(v)); };
  CHECK(worst_error(dx, differentiate(loss, widened(x)), kAllowed) <= 1);
}

TEST_CASE("the backward of cross entropy agrees with finite differences") {
  CpuBench bench;
  constexpr Index kRows = 5, kClasses = 33;
  const Floats logits = random_floats(kRows * kClasses, 1, 2.0F);
  const auto targets = random_tokens(kRows, kClasses, 2);
  Floats gradient = logits;
  bench.device.cross_entropy(kRows, kClasses, targets.data(), gradient.data());
  bench.device.cross_entropy_backward(kRows, kClasses, 0.25F, targets.data(), gradient.data());
  const auto loss = [&](const Doubles& v) { return 0.25 * cross_entropy(kClasses, targets, v); };
  CHECK(worst_error(gradient, differentiate(loss, widened(logits)), kAllowed) <= 1);
}

TEST_CASE("the backward of an embedding agrees with finite differences") {
  CpuBench bench;
  const Floats table = random_floats(7 * 3, 1), dout = random_floats(10 * 3, 2);
  const auto tokens = random_tokens(10, 7, 3);
  Floats dtable(table.size(), 7.0F);
  bench.device.embedding_backward(10, 3, 7, tokens.data(), dout.data(), dtable.data());
  const auto loss = [&](const Doubles& v) { return dot(widened(dout), embedding(3, tokens, v)); };
  CHECK(worst_error(dtable, differentiate(loss, widened(table)), kAllowed) <= 1);
}

TEST_CASE("a linear layer's three products agree with finite differences") {
  // y[rows, out] = x[rows, in] w[out, in]^T + b, so dx = dy w, dw = dy^T x, db = the rows of dy.
  CpuBench bench;
  constexpr Index kRows = 5, kIn = 7, kOut = 3;
  const Floats x = random_floats(kRows * kIn, 1), w = random_floats(kOut * kIn, 2),
               b = random_floats(kOut, 3), dy = random_floats(kRows * kOut, 4);
  Floats dx(x.size()), dw(w.size()), db(b.size());
  bench.device.matmul(plain_product(kRows, kIn, kOut), dy.data(), w.data(), nullptr, dx.data());
  bench.device.matmul(plain_product(kOut, kIn, kRows, true), dy.data(), x.data(), nullptr,
                      dw.data());
  bench.device.sum_rows(kRows, kOut, dy.data(), db.data());
  const auto loss = [&](const Doubles& xs, const Doubles& ws, const Doubles& bs) {
    const Product forward = plain_product(kRows, kOut, kIn, false, true);
    return dot(widened(dy), product(forward, xs, ws, bs, Doubles(dy.size())).value);
  };
  const Doubles x64 = widened(x), w64 = widened(w), b64 = widened(b);
  CHECK(worst_error(dx, differentiate([&](const Doubles& v) { return loss(v, w64, b64); }, x64),
                    kAllowed) <= 1);
  CHECK(worst_error(dw, differentiate([&](const Doubles& v) { return loss(x64, v, b64); }, w64),
                    kAllowed) <= 1);
  CHECK(worst_error(db, differentiate([&](const Doubles& v) { return loss(x64, w64, v); }, b64),
                    kAllowed) <= 1);
}
