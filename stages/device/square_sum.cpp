#include <algorithm>
#include <cmath>
#include <limits>

#include "stages/device/device.hpp"

namespace zerolab {

SquareSum& SquareSum::operator+=(const SquareSum& other) {
  for (std::size_t e = 0; e < kExponents; ++e) {
    const auto [low, high] = other.bucket[e];
    bucket[e][0] += low;
    bucket[e][1] += high + (bucket[e][0] < low ? 1U : 0U);
  }
  return *this;
}

double SquareSum::root() const {
  const auto [infinities, nans] = bucket[kExponents - 1];
  if (nans != 0) return std::numeric_limits<double>::quiet_NaN();
  if (infinities != 0) return std::numeric_limits<double>::infinity();
  double sum = 0;
  for (std::size_t e = 0; e < kExponents - 1; ++e) {
    // A value is its significand times 2^(e - 150); field 0 (denormals) has the scale of field 1.
    // 32 bits at a time are exact as a double.
    const int scale = 2 * (std::max(static_cast<int>(e), 1) - 150);
    for (int word = 0; word < 4; ++word) {
      const std::uint64_t half = bucket[e][static_cast<std::size_t>(word / 2)];
      const std::uint64_t digits = (half >> (word % 2 * 32)) & 0xFFFFFFFFU;
      sum += std::ldexp(static_cast<double>(digits), scale + 32 * word);
    }
  }
  return std::sqrt(sum);
}

}  // namespace zerolab
