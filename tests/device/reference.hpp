#pragma once

#include "tests/device/support.hpp"

// The layers in float64, written from their definitions and sharing nothing with the device: what
// the device is compared with and what finite differences are taken of.

namespace zerolab::test {

inline Index position(const Operand& operand, Index outer, Index inner, Index row, Index column) {
  return outer * operand.outer_stride + inner * operand.inner_stride +
         (operand.transposed ? column * operand.leading + row : row * operand.leading + column);
}

/// Elements an operand of rows x columns reaches over.
inline Index extent(const Product& p, const Operand& operand, Index rows, Index columns) {
  if (rows * columns == 0) return 0;
  return position(operand, p.outer - 1, p.inner - 1, rows - 1, columns - 1) + 1;
}

/// What attention multiplies, in a batch of sequences times heads: queries by keys; probabilities,
/// and their transpose, by values, into the slices of one head after another.
inline std::vector<Product> attention_products() {
  constexpr Index kBatch = 3, kHeads = 2, kLength = 7, kHead = 5, kWidth = kHeads * kHead;
  const Operand slice{3 * kWidth, false, kLength * 3 * kWidth, kHead};
  const Operand square{kLength, false, kHeads * kLength * kLength, kLength * kLength};
  Product scores;
  scores.outer = kBatch;
  scores.inner = kHeads;
  scores.m = scores.n = kLength;
  scores.k = kHead;
  scores.a = scores.b = slice;
  scores.b.transposed = true;
  scores.c = square;
  Product mixed = scores;
  mixed.n = kHead;
  mixed.k = kLength;
  mixed.a = square;
  mixed.b = slice;
  mixed.c = {kWidth, false, kLength * kWidth, kHead};
  Product transposed = mixed;
  transposed.a.transposed = true;
  return {scores, mixed, transposed};
}

/// A product and, element by element, the sum of the magnitudes it adds: fp32 in any order, fused
/// or not, is off by at most (k + 2) roundings of that.
struct ProductResult {
  Doubles value, magnitude;
};

/// `c` is what lies there before: elements between the rows stay.
inline ProductResult product(const Product& p, const Doubles& a, const Doubles& b,
                             const Doubles& bias, const Doubles& c) {
  ProductResult result{c, Doubles(c.size(), 0.0)};
  for (Index outer = 0; outer < p.outer; ++outer) {
    for (Index inner = 0; inner < p.inner; ++inner) {
      for (Index row = 0; row < p.m; ++row) {
        for (Index column = 0; column < p.n; ++column) {
          double sum = bias.empty() ? 0.0 : bias[at(column)];
          double magnitude = std::abs(sum);
          for (Index i = 0; i < p.k; ++i) {
            const double term = a[at(position(p.a, outer, inner, row, i))] *
                                b[at(position(p.b, outer, inner, i, column))];
            sum += term;
            magnitude += std::abs(term);
          }
          const std::size_t out = at(position(p.c, outer, inner, row, column));
          result.value[out] = sum;
          result.magnitude[out] = magnitude;
        }
      }
    }
  }
  return result;
}

struct Moments {
  double mean = 0, variance = 0;
};

inline Moments moments(const Doubles& x, Index row, Index width) {
  Moments m;
  for (Index i = 0; i < width; ++i) m.mean += x[at(row * width + i)];
  m.mean /= static_cast<double>(width);
  for (Index i = 0; i < width; ++i) {
    const double difference = x[at(row * width + i)] - m.mean;
    m.variance += difference * difference;
  }
  m.variance /= static_cast<double>(width);
  return m;
}

inline Doubles layer_norm(Index width, double epsilon, const Doubles& x, const Doubles& gamma,
                          const Doubles& beta) {
  Doubles y(x.size());
  for (Index row = 0; row < static_cast<Index>(x.size()) / width; ++row) {
    const Moments m = moments(x, row, width);
    for (Index i = 0; i < width; ++i) {
      const double normal = (x[at(row * width + i)] - m.mean) / std::sqrt(m.variance + epsilon);
      y[at(row * width + i)] = normal * gamma[at(i)] + beta[at(i)];
    }
  }
  return y;
}

inline Doubles causal_softmax(Index length, double factor, const Doubles& scores) {
  Doubles result(scores.size(), 0.0);
  for (Index row = 0; row < static_cast<Index>(scores.size()) / length; ++row) {
    const Index begin = row * length, end = begin + row % length + 1;
    double largest = -std::numeric_limits<double>::infinity(), sum = 0;
    for (Index i = begin; i < end; ++i) largest = std::max(largest, factor * scores[at(i)]);
    for (Index i = begin; i < end; ++i) sum += std::exp(factor * scores[at(i)] - largest);
    for (Index i = begin; i < end; ++i) {
      result[at(i)] = std::exp(factor * scores[at(i)] - largest) / sum;
    }
  }
  return result;
}

inline Doubles gelu(const Doubles& x) {
  const double pi = std::acos(-1.0);
  Doubles y(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double u = std::sqrt(2 / pi) * (x[i] + 0.044715 * x[i] * x[i] * x[i]);
    y[i] = 0.5 * x[i] * (1 + std::tanh(u));
  }
  return y;
}

inline Doubles embedding(Index width, const std::vector<std::int32_t>& tokens,
                         const Doubles& table) {
  Doubles out;
  for (const std::int32_t token : tokens) {
    for (Index i = 0; i < width; ++i) out.push_back(table[at(token * width + i)]);
  }
  return out;
}

inline Doubles log_softmax(Index classes, const Doubles& logits) {
  Doubles result(logits.size());
  for (Index row = 0; row < static_cast<Index>(logits.size()) / classes; ++row) {
    const auto begin = logits.begin() + row * classes;
    const double largest = *std::max_element(begin, begin + classes);
    double sum = 0;
    for (Index i = 0; i < classes; ++i) sum += std::exp(begin[i] - largest);
    for (Index i = 0; i < classes; ++i) {
      result[at(row * classes + i)] = begin[i] - largest - std::log(sum);
    }
  }
  return result;
}

inline double cross_entropy(Index classes, const std::vector<std::int32_t>& targets,
                            const Doubles& logits) {
  const Doubles logs = log_softmax(classes, logits);
  double loss = 0;
  for (std::size_t row = 0; row < targets.size(); ++row) {
    loss -= logs[row * at(classes) + static_cast<std::size_t>(targets[row])];
  }
  return loss;
}

/// The gradient of `loss` at `x` by central differences.
template <typename Loss>
Doubles differentiate(const Loss& loss, Doubles x) {
  constexpr double kStep = 1e-5;  // error about kStep^2 + 1e-16 / kStep
  Doubles gradient(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double before = x[i];
    x[i] = before + kStep;
    const double above = loss(x);
    x[i] = before - kStep;
    gradient[i] = (above - loss(x)) / (2 * kStep);
    x[i] = before;
  }
  return gradient;
}

inline double dot(const Doubles& a, const Doubles& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

}  // namespace zerolab::test
