#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "stages/base/philox.hpp"
#include "stages/device/cpu/cpu_device.hpp"
#include "stages/memory/ledger.hpp"
#include "stages/trace/recorder.hpp"

namespace zerolab::test {

using Floats = std::vector<float>;
using Doubles = std::vector<double>;

/// Half a unit in the last place of 1.0F: what one rounding costs, relatively.
inline constexpr double kRounding = 0x1p-24;

struct CpuBench {
  Recorder recorder{0};
  Ledger ledger{"device", recorder};
  CpuDevice device{ledger};
};

inline std::size_t at(Index i) { return static_cast<std::size_t>(i); }

inline Floats random_floats(Index n, std::uint64_t seed, float deviation = 1.0F) {
  const Philox philox(seed);
  Floats values(at(n));
  for (Index i = 0; i < n; ++i) {
    values[at(i)] = almost_normal(philox(0, static_cast<std::uint64_t>(i)), deviation);
  }
  return values;
}

inline std::vector<std::int32_t> random_tokens(Index n, Index vocabulary, std::uint64_t seed) {
  const Philox philox(seed);
  std::vector<std::int32_t> tokens(at(n));
  for (Index i = 0; i < n; ++i) {
    const std::uint32_t word = philox(1, static_cast<std::uint64_t>(i)).word[0];
    tokens[at(i)] = static_cast<std::int32_t>(word % static_cast<std::uint32_t>(vocabulary));
  }
  return tokens;
}

inline Doubles widened(const Floats& values) { return Doubles(values.begin(), values.end()); }

/// The largest |got - want| in units of `allowed`; infinite where a value is NaN.
inline double worst_error(const Floats& got, const Doubles& want, const Doubles& allowed) {
  double worst = got.size() == want.size() ? 0.0 : std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < std::min(got.size(), want.size()); ++i) {
    const double error = std::abs(static_cast<double>(got[i]) - want[i]);
    if (error == 0) continue;
    const double units = error / allowed[i];
    worst = std::isnan(units) ? std::numeric_limits<double>::infinity() : std::max(worst, units);
  }
  return worst;
}

inline double worst_error(const Floats& got, const Doubles& want, double allowed) {
  return worst_error(got, want, Doubles(want.size(), allowed));
}

inline bool same_bits(const Floats& a, const Floats& b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0);
}

/// How the rows of a plain [rows, columns] matrix lie, or those of its transpose.
inline Operand dense(Index rows, Index columns, bool transposed = false) {
  return {transposed ? rows : columns, transposed, 0, 0};
}

inline Product plain_product(Index m, Index n, Index k, bool transpose_a = false,
                             bool transpose_b = false) {
  Product product;
  product.m = m;
  product.n = n;
  product.k = k;
  product.a = dense(m, k, transpose_a);
  product.b = dense(k, n, transpose_b);
  product.c = dense(m, n);
  return product;
}

}  // namespace zerolab::test
