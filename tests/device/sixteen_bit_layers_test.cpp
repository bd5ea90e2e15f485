#include "tests/device/reference.hpp"
#include "tests/device/sixteen_bit.hpp"

// Layers on 16-bit tensors against float64 on the same values. What they widen at a time is 2^14
// elements: sizes here are below that, a few times that and no multiple, and single rows above it.

using namespace zerolab;
using namespace zerolab::test;

namespace {

constexpr float kEpsilon = 1e-5F;

struct Size {
  Index rows, width;
};
constexpr Size kSizes[] = {{1, 1}, {1, 33}, {3, 5}, {7, 64}, {400, 100}, {163, 100}, {2, 20001}};

std::string text(const Format& format, const Size& size) {
  return std::string(name_of(format.dtype)) + " rows " + std::to_string(size.rows) + " width " +
         std::to_string(size.width);
}

Doubles times(const Doubles& values, double factor) {
  Doubles result = values;
  for (double& value : result) value = std::abs(value) * factor;
  return result;
}

/// A gradient in float64 and the sum of the magnitudes it adds up.
struct Gradient {
  Doubles value, magnitude;
  explicit Gradient(std::size_t n) : value(n), magnitude(n) {}
};
struct LayerNormGradients {
  Gradient dx, dgamma, dbeta;
};

// With x^ = (x - mean) / deviation and g = dy gamma:
// dx = (g - mean of g - x^ times the mean of g x^) / deviation.
LayerNormGradients layer_norm_backward(Index width, const Doubles& x, const Doubles& gamma,
                                       const Doubles& dy) {
  LayerNormGradients result{Gradient(x.size()), Gradient(at(width)), Gradient(at(width))};
  const auto scale = 1 / static_cast<double>(width);
  for (Index row = 0; row < static_cast<Index>(x.size()) / width; ++row) {
    const Moments m = moments(x, row, width);
    const double deviation = std::sqrt(m.variance + static_cast<double>(kEpsilon));
    const auto normal = [&](Index i) { return (x[at(row * width + i)] - m.mean) / deviation; };
    double mean = 0, along = 0, largest = 0;
    for (Index i = 0; i < width; ++i) {
      const double d = dy[at(row * width + i)], g = d * gamma[at(i)];
      mean += g * scale;
      along += g * normal(i) * scale;
      largest = std::max(largest, std::abs(g) * (1 + std::abs(normal(i))));
      result.dgamma.value[at(i)] += d * normal(i);
      result.dgamma.magnitude[at(i)] += std::abs(d) * (1 + std::abs(normal(i)));
      result.dbeta.value[at(i)] += d;
      result.dbeta.magnitude[at(i)] += std::abs(d);
    }
    for (Index i = 0; i < width; ++i) {
      const std::size_t here = at(row * width + i);
      result.dx.value[here] = (dy[here] * gamma[at(i)] - mean - normal(i) * along) / deviation;
      result.dx.magnitude[here] = largest * (2 + std::abs(normal(i))) / deviation;
    }
  }
  return result;
}

Gradient causal_softmax_backward(Index length, double factor, const Doubles& p, const Doubles& d) {
  Gradient result(p.size());
  for (Index row = 0; row < static_cast<Index>(p.size()) / length; ++row) {
    const Index begin = row * length, end = begin + row % length + 1;
    double mean = 0, magnitude = 0;
    for (Index i = begin; i < end; ++i) {
      mean += p[at(i)] * d[at(i)];
      magnitude += std::abs(p[at(i)] * d[at(i)]);
    }
    for (Index i = begin; i < end; ++i) {
      result.value[at(i)] = factor * p[at(i)] * (d[at(i)] - mean);
      result.magnitude[at(i)] = factor * p[at(i)] * (std::abs(d[at(i)]) + magnitude);
    }
  }
  return result;
}

// With gate = (1 + tanh u) / 2, far out without cancelling, GELU is x gate and its derivative
// gate + 2 x u' gate (1 - gate). A rounding of u counts 2 |u| times.
struct GeluResults {
  Gradient y, dx;
};

GeluResults gelu_and_backward(const Doubles& x, const Doubles& dy) {
  const double root = std::sqrt(2 / std::acos(-1.0));
  GeluResults result{Gradient(x.size()), Gradient(x.size())};
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double u = root * (x[i] + 0.044715 * x[i] * x[i] * x[i]);
    const double gate = 1 / (1 + std::exp(-2 * u)), roundings = 20 + 8 * std::abs(u);
    const double slope = root * (1 + 3 * 0.044715 * x[i] * x[i]);
    const double second = 2 * x[i] * slope * gate / (1 + std::exp(2 * u));
    result.y.value[i] = x[i] * gate;
    result.y.magnitude[i] = std::abs(x[i]) * gate * roundings;
    result.dx.value[i] = dy[i] * (gate + second);
    result.dx.magnitude[i] = std::abs(dy[i]) * (gate + std::abs(second)) * roundings;
  }
  return result;
}

Gradient cross_entropy_backward(Index classes, double factor,
                                const std::vector<std::int32_t>& targets, const Doubles& logits) {
  const Doubles logs = log_softmax(classes, logits);
  Gradient result(logits.size());
  for (std::size_t i = 0; i < logits.size(); ++i) {
    const auto place = static_cast<Index>(i) % classes;
    const double hit = targets[i / at(classes)] == place ? 1.0 : 0.0;
    result.value[i] = factor * (std::exp(logs[i]) - hit);
    result.magnitude[i] = factor * (std::exp(logs[i]) + hit);
  }
  return result;
}

}  // namespace

TEST_CASE("the float64 backwards that 16-bit layers are compared with are derivatives",
          "[sixteen]") {
  const auto near = [](const Doubles& a, const Doubles& b) {
    double worst = a.size() == b.size() ? 0 : 1;
    for (std::size_t i = 0; i < a.size(); ++i) worst = std::max(worst, std::abs(a[i] - b[i]));
    return worst <= 1e-8;
  };
  const Doubles x = widened(random_floats(21, 1)), dy = widened(random_floats(21, 2)),
                gamma = widened(random_floats(7, 3)), beta = widened(random_floats(7, 4));
  const LayerNormGradients norm = layer_norm_backward(7, x, gamma, dy);
  const auto norm_loss = [&](const Doubles& xs, const Doubles& gammas, const Doubles& betas) {
    return dot(dy, layer_norm(7, static_cast<double>(kEpsilon), xs, gammas, betas));
  };
  CHECK(near(norm.dx.value,
             differentiate([&](const Doubles& v) { return norm_loss(v, gamma, beta); }, x)));
  CHECK(near(norm.dgamma.value,
             differentiate([&](const Doubles& v) { return norm_loss(x, v, beta); }, gamma)));
  CHECK(near(norm.dbeta.value,
             differentiate([&](const Doubles& v) { return norm_loss(x, gamma, v); }, beta)));

  const Doubles scores = widened(random_floats(18, 5)), d = widened(random_floats(18, 6));
  CHECK(near(
      causal_softmax_backward(3, 0.5, causal_softmax(3, 0.5, scores), d).value,
      differentiate([&](const Doubles& v) { return dot(d, causal_softmax(3, 0.5, v)); }, scores)));
  CHECK(near(gelu_and_backward(x, dy).y.value, gelu(x)));
  CHECK(near(gelu_and_backward(x, dy).dx.value,
             differentiate([&](const Doubles& v) { return dot(dy, gelu(v)); }, x)));
  const std::vector<std::int32_t> targets{6, 0, 2};
  CHECK(near(
      cross_entropy_backward(7, 0.25, targets, x).value,
      differentiate([&](const Doubles& v) { return 0.25 * cross_entropy(7, targets, v); }, x)));
}

TEST_CASE("rows of 16 bits are summed in fp32, in their order, and rounded once", "[sixteen]") {
  CpuBench bench;
  for (const Format& format : kFormats) {
    for (const auto& [rows, width] : {Size{0, 3}, Size{1, 5}, Size{33, 7}, Size{100, 1025}}) {
      INFO(text(format, {rows, width}));
      const Halves in = random_halves(format, rows * width, 1);
      const Floats wide = to_floats(in);
      Floats sum(at(width));
      for (std::size_t i = 0; i < wide.size(); ++i) sum[i % at(width)] += wide[i];
      Halves out = unwritten_halves(format, width);
      bench.device.sum_rows(rows, width, in.values(), out.values());
      CHECK(out == to_halves(format, sum));
      Floats wide_out(at(width), 7.0F);
      bench.device.sum_rows(rows, width, in.values(), wide_out.data());
      CHECK(same_bits(wide_out, sum));
      bench.device.sum_rows(rows, width, wide.data(), out.values());
      CHECK(out == to_halves(format, sum));
    }
  }
}

TEST_CASE("layer norm of 16-bit rows is the float64 result rounded", "[sixteen]") {
  CpuBench bench;
  for (const Format& format : kFormats) {
    for (const Size& size : kSizes) {
      INFO(text(format, size));
      const auto [rows, width] = size;
      const Halves x = random_halves(format, rows * width, 1, 2.0F);
      const Halves gamma = random_halves(format, width, 2), beta = random_halves(format, width, 3);
      Halves y = unwritten_halves(format, rows * width);
      Floats mean(at(rows), 7.0F), variance(at(rows), 7.0F);
      bench.device.layer_norm(rows, width, kEpsilon, x.values(), gamma.values(), beta.values(),
                              y.values(), mean.data(), variance.data());
      // As for fp32 rows (layers_test.cpp).
      const double allowed = kRounding * static_cast<double>(width + 8) * 8;
      const Doubles wide = widened(x), want = layer_norm(width, static_cast<double>(kEpsilon), wide,
                                                         widened(gamma), widened(beta));
      check_agreement(y, want, Doubles(want.size(), 10 * allowed));
      double worst_mean = 0, worst_variance = 0;
      for (Index row = 0; row < rows; ++row) {
        const Moments m = moments(wide, row, width);
        worst_mean = std::max(worst_mean, std::abs(static_cast<double>(mean[at(row)]) - m.mean));
        worst_variance =
            std::max(worst_variance, std::abs(static_cast<double>(variance[at(row)]) - m.variance));
      }
      CHECK(worst_mean <= allowed);
      CHECK(worst_variance <= 8 * allowed);
    }
  }
}

TEST_CASE("the backward of layer norm over 16-bit rows sums its weights' gradients over all rows",
          "[sixteen]") {
  CpuBench bench;
  for (const Format& format : kFormats) {
    for (const Size& size : kSizes) {
      if (size.width == 1)
        continue;  // its gradient is 0, and rounding errors over a deviation of 0
      INFO(text(format, size));
      const auto [rows, width] = size;
      const Halves x = random_halves(format, rows * width, 1, 2.0F);
      const Halves gamma = random_halves(format, width, 2);
      const Halves dy = random_halves(format, rows * width, 3);
      const Doubles wide = widened(x);
      Floats mean(at(rows)), variance(at(rows));
      for (Index row = 0; row < rows; ++row) {
        const Moments m = moments(wide, row, width);
        mean[at(row)] = static_cast<float>(m.mean);
        variance[at(row)] = static_cast<float>(m.variance);
      }
      Halves dx = unwritten_halves(format, rows * width);
      Halves dgamma = unwritten_halves(format, width), dbeta = dgamma;
      bench.device.layer_norm_backward(rows, width, kEpsilon, x.values(), gamma.values(),
                                       mean.data(), variance.data(), dy.values(), dx.values(),
                                       dgamma.values(), dbeta.values());
      const LayerNormGradients want = layer_norm_backward(width, wide, widened(gamma), widened(dy));
      const double terms = kRounding * static_cast<double>(width + 16);
      check_agreement(dx, want.dx.value, times(want.dx.magnitude, terms));
      const double over_rows = kRounding * static_cast<double>(rows + 16);
      check_agreement(dgamma, want.dgamma.value, times(want.dgamma.magnitude, over_rows));
      check_agreement(dbeta, want.dbeta.value, times(want.dbeta.magnitude, over_rows));
    }
    Halves none = unwritten_halves(format, 3), other = none;
    bench.device.layer_norm_backward(0, 3, kEpsilon, none.values(), none.values(), nullptr, nullptr,
                                     none.values(), none.values(), none.values(), other.values());
    CHECK(none == to_halves(format, Floats(3, 0.0F)));
    CHECK(other == none);
  }
}

TEST_CASE("causal softmax of 16-bit scores knows its row in every block of rows", "[sixteen]") {
  CpuBench bench;
  for (const Format& format : kFormats) {
    // 2^14 / 37 rows are no multiple of 37; 200 rows of 200 are cut within a square as well.
    for (const auto& [batch, length] : {Size{1, 1}, Size{3, 5}, Size{40, 37}, Size{3, 200}}) {
      INFO(text(format, {batch, length}));
      const Index n = batch * length * length;
      const Halves scores = random_halves(format, n, 1, 4.0F);
      Halves p = scores;
      bench.device.causal_softmax(batch, length, 0.25F, p.values());
      const Doubles want = causal_softmax(length, 0.25, widened(scores));
      check_agreement(p, want, times(want, kRounding * static_cast<double>(length + 40)));

      const Halves dp = random_halves(format, n, 2);
      Halves dscores = dp;
      bench.device.causal_softmax_backward(batch, length, 0.25F, std::as_const(p).values(),
                                           dscores.values());
      const Gradient gradient = causal_softmax_backward(length, 0.25, widened(p), widened(dp));
      check_agreement(dscores, gradient.value,
                      times(gradient.magnitude, kRounding * static_cast<double>(length + 8)));
      bool zeros = true;
      for (Index i = 0; i < n; ++i) {
        const bool behind = i % length > i / length % length;
        zeros = zeros && (!behind || (p.bits[at(i)] == 0 && dscores.bits[at(i)] == 0));
      }
      CHECK(zeros);
    }
  }
}

TEST_CASE("GELU of 16-bit values is the float64 result rounded, its backward too", "[sixteen]") {
  CpuBench bench;
  for (const Format& format : kFormats) {
    for (const Index n : {0, 1, 33, 2047, 2048, 2049, 5000}) {
      INFO(text(format, {1, n}));
      const Halves x = random_halves(format, n, 1, 3.0F), dy = random_halves(format, n, 2);
      Halves y = unwritten_halves(format, n), dx = y;
      bench.device.gelu(n, x.values(), y.values());
      bench.device.gelu_backward(n, x.values(), dy.values(), dx.values());
      const GeluResults want = gelu_and_backward(widened(x), widened(dy));
      check_agreement(y, want.y.value, times(want.y.magnitude, kRounding));
      check_agreement(dx, want.dx.value, times(want.dx.magnitude, kRounding));
    }
  }
}

TEST_CASE("an embedding copies 16-bit rows, and a token's gradient is rounded once", "[sixteen]") {
  CpuBench bench;
  for (const Format& format : kFormats) {
    for (const Index width : {1, 5, 33, 1025}) {
      INFO(text(format, {300, width}));
      constexpr Index kCount = 300, kVocabulary = 11;  // token 10 never comes, each other often
      const Halves table = random_halves(format, kVocabulary * width, 1);
      const auto tokens = random_tokens(kCount, kVocabulary - 1, 2);
      Halves out = unwritten_halves(format, kCount * width);
      bench.device.embedding(kCount, width, tokens.data(), table.values(), out.values());
      CHECK(widened(out) == embedding(width, tokens, widened(table)));

      const Halves dout = random_halves(format, kCount * width, 3);
      const Floats wide = to_floats(dout);
      Floats sum(at(kVocabulary * width));
      for (Index i = 0; i < kCount; ++i) {
        for (Index j = 0; j < width; ++j) {
          sum[at(tokens[at(i)] * width + j)] += wide[at(i * width + j)];
        }
      }
      Halves dtable = unwritten_halves(format, kVocabulary * width);
      bench.device.embedding_backward(kCount, width, kVocabulary, tokens.data(), dout.values(),
                                      dtable.values());
      CHECK(dtable == to_halves(format, sum));
      Floats wide_table(sum.size(), 7.0F);
      bench.device.embedding_backward(kCount, width, kVocabulary, tokens.data(), dout.values(),
                                      wide_table.data());
      CHECK(same_bits(wide_table, sum));
      bench.device.embedding_backward(0, width, kVocabulary, nullptr, nullptr, dtable.values());
      CHECK(dtable == to_halves(format, Floats(sum.size(), 0.0F)));
    }
  }
}

TEST_CASE("the loss of 16-bit logits is that of their values, its gradient is rounded once",
          "[sixteen]") {
  CpuBench bench;
  for (const Format& format : kFormats) {
    for (const Size& size : {Size{1, 3}, Size{33, 5}, Size{130, 300}, Size{2, 17001}}) {
      INFO(text(format, size));
      const auto [rows, classes] = size;
      const Halves logits = random_halves(format, rows * classes, 1, 3.0F);
      const auto targets = random_tokens(rows, classes, 2);
      Halves gradient = logits;
      const double loss =
          bench.device.cross_entropy(rows, classes, targets.data(), gradient.values());
      const double allowed = kRounding * static_cast<double>(classes + 132);  // layers_test.cpp
      CHECK(std::abs(loss - cross_entropy(classes, targets, widened(logits))) <=
            allowed * static_cast<double>(rows));
      bench.device.cross_entropy_backward(rows, classes, 0.25F, targets.data(), gradient.values());
      const Gradient want = cross_entropy_backward(classes, 0.25, targets, widened(logits));
      check_agreement(gradient, want.value, times(want.magnitude, allowed));
    }
  }
}
