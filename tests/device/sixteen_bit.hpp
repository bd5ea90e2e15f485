#pragma once

#include "tests/device/support.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/sixteen_bits.hpp"

namespace zerolab::test {

/// A tensor of 16-bit elements.
struct Halves {
  Format format;
  std::vector<std::uint16_t> bits;

  Values values() { return {bits.data(), format.dtype}; }
  ConstValues values() const { return {bits.data(), format.dtype}; }
  bool operator==(const Halves& other) const { return bits == other.bits; }
};

template <typename Numbers>
Halves to_halves(const Format& format, const Numbers& values) {
  Halves halves{format, {}};
  for (const auto value : values) {
    halves.bits.push_back(encoded(format, static_cast<double>(value)));
  }
  return halves;
}

inline Doubles widened(const Halves& halves) {
  Doubles values;
  for (const std::uint16_t bits : halves.bits) values.push_back(decoded(halves.format, bits));
  return values;
}

inline Floats to_floats(const Halves& halves) {
  Floats values;
  for (const double value : widened(halves)) values.push_back(static_cast<float>(value));
  return values;
}

inline Halves random_halves(const Format& format, Index n, std::uint64_t seed,
                            float deviation = 1.0F) {
  return to_halves(format, random_floats(n, seed, deviation));
}

/// For results: NaN before they are written.
inline Halves unwritten_halves(const Format& format, Index n) {
  return {format, std::vector<std::uint16_t>(at(n), 0x7FFF)};
}

/// What was computed in fp32 and rounded once, against the float64 result.
struct Agreement {
  double worst = 0;    // error, in units of what fp32 may be off by and half a last place
  double inexact = 0;  // results that are not the float64 result rounded, in units of 1% and three
};

inline Agreement agreement(const Halves& got, const Doubles& want, const Doubles& fp32_error) {
  Agreement result;
  if (got.bits.size() != want.size()) result.worst = std::numeric_limits<double>::infinity();
  double inexact = 0;
  for (std::size_t i = 0; i < std::min(got.bits.size(), want.size()); ++i) {
    const double value = decoded(got.format, got.bits[i]);
    const double error = std::abs(value - want[i]);
    // Nearer than half of what numbers lie apart is nearest; the rest are ties, and wrong.
    if (error < half_unit(got.format, want[i])) continue;
    if (value == decoded(got.format, encoded(got.format, want[i]))) continue;
    inexact += 1;
    const double allowed = fp32_error[i] + half_unit(got.format, std::abs(want[i]) + fp32_error[i]);
    const double units = error / allowed;
    result.worst =
        std::isnan(units) ? std::numeric_limits<double>::infinity() : std::max(result.worst, units);
  }
  result.inexact = inexact / (3 + static_cast<double>(want.size()) / 100);
  return result;
}

inline void check_agreement(const Halves& got, const Doubles& want, const Doubles& fp32_error) {
  const Agreement found = agreement(got, want, fp32_error);
  CHECK(found.worst <= 1);
  CHECK(found.inexact <= 1);
}

}  // namespace zerolab::test
