#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "stages/base/dtype.hpp"

// The 16-bit types as IEEE 754 describes formats, in doubles: nothing is shared with base/half.hpp.

namespace zerolab::test {

/// Sign, exponent and significand fill 16 bits.
struct Format {
  Dtype dtype;
  int exponent_bits, significand_bits;

  constexpr int bias() const { return (1 << (exponent_bits - 1)) - 1; }
  constexpr std::uint32_t infinity() const {
    return 0x7FFFU >> significand_bits << significand_bits;
  }
};
inline constexpr Format kBf16{Dtype::bf16, 8, 7};
inline constexpr Format kFp16{Dtype::fp16, 5, 10};
inline constexpr Format kFormats[] = {kBf16, kFp16};

/// The value of a pattern, as if exponents had no end: that of infinity is where rounding up from
/// the largest number leads.
inline double unbounded(const Format& format, std::uint32_t bits) {
  const std::uint32_t magnitude = bits & 0x7FFFU;
  const auto exponent = static_cast<int>(magnitude >> format.significand_bits);
  const auto fraction = static_cast<double>(magnitude & ((1U << format.significand_bits) - 1U));
  const double significand = exponent == 0 ? fraction : fraction + (1 << format.significand_bits);
  const double value =
      std::ldexp(significand, std::max(exponent, 1) - format.bias() - format.significand_bits);
  return (bits & 0x8000U) != 0 ? -value : value;
}

inline double decoded(const Format& format, std::uint32_t bits) {
  const std::uint32_t magnitude = bits & 0x7FFFU;
  if (magnitude < format.infinity()) return unbounded(format, bits);
  if (magnitude > format.infinity()) return std::numeric_limits<double>::quiet_NaN();
  const double infinity = std::numeric_limits<double>::infinity();
  return (bits & 0x8000U) != 0 ? -infinity : infinity;
}

/// Half of what numbers near `value` lie apart: the most that rounding it changes.
inline double half_unit(const Format& format, double value) {
  const int least = 1 - format.bias();
  const int exponent = value == 0 ? least : std::max(std::ilogb(value), least);
  return std::ldexp(0.5, exponent - format.significand_bits);
}

/// The nearest number, ties to even, as its bits. Not for NaN.
inline std::uint16_t encoded(const Format& format, double value) {
  const double unit = 2 * half_unit(format, value);
  const double nearest = std::isinf(value) ? value : std::nearbyint(value / unit) * unit;
  const std::uint32_t sign = std::signbit(value) ? 0x8000U : 0U;
  const double magnitude = std::abs(nearest);
  if (magnitude >= unbounded(format, format.infinity())) {
    return static_cast<std::uint16_t>(sign | format.infinity());
  }
  // In units of its own exponent a number is its significand, hidden bit and all.
  const double own = 2 * half_unit(format, magnitude);
  const auto significand = static_cast<std::uint32_t>(magnitude / own);
  const std::uint32_t hidden = 1U << format.significand_bits;
  const auto exponent =
      static_cast<std::uint32_t>(significand < hidden ? 0 : std::ilogb(magnitude) + format.bias());
  const std::uint32_t fraction = significand < hidden ? significand : significand - hidden;
  return static_cast<std::uint16_t>(sign | exponent << format.significand_bits | fraction);
}

}  // namespace zerolab::test
