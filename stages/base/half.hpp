#pragma once

#include <bit>
#include <cstdint>

#include "stages/base/host_device.hpp"

namespace zerolab {

/// The two 16-bit element types, as bits. Nothing is computed in them: what is read is widened to
/// fp32, which is exact, and what is stored is rounded once, to the nearest, ties to even.
struct Bf16 {
  std::uint16_t bits = 0;
};
struct Fp16 {
  std::uint16_t bits = 0;
};

ZEROLAB_HOST_DEVICE inline float widened(float value) { return value; }

ZEROLAB_HOST_DEVICE inline float widened(Bf16 value) {
  return std::bit_cast<float>(std::uint32_t{value.bits} << 16);
}

// IEEE 754 binary16: 5 bits of exponent, 10 of significand. Shifted into fp32's place the exponent
// is too small by 112, which one exact multiplication mends, for denormals too.
ZEROLAB_HOST_DEVICE inline float widened(Fp16 value) {
  const std::uint32_t sign = (value.bits & 0x8000U) << 16;
  const std::uint32_t magnitude = (value.bits & 0x7FFFU) << 13;
  const float finite = std::bit_cast<float>(magnitude) * 0x1p112F;
  const std::uint32_t bits =
      magnitude >= 0x0F800000U ? magnitude | 0x7F800000U : std::bit_cast<std::uint32_t>(finite);
  return std::bit_cast<float>(sign | bits);
}

template <typename T>
ZEROLAB_HOST_DEVICE T rounded(float value);

template <>
ZEROLAB_HOST_DEVICE inline float rounded<float>(float value) {
  return value;
}

template <>
ZEROLAB_HOST_DEVICE inline Bf16 rounded<Bf16>(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t nearest = (bits + 0x7FFFU + ((bits >> 16) & 1U)) >> 16;
  const std::uint32_t quiet_nan = (bits >> 16) | 0x40U;
  const bool is_nan = (bits & 0x7FFFFFFFU) > 0x7F800000U;
  return {static_cast<std::uint16_t>(is_nan ? quiet_nan : nearest)};
}

// Normal results round as above, at bit 13. Below 2^-14 the last place is 2^-24 whatever the
// exponent: adding 1/2, whose last place is that, lets the addition round.
template <>
ZEROLAB_HOST_DEVICE inline Fp16 rounded<Fp16>(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (bits >> 16) & 0x8000U;
  const std::uint32_t magnitude = bits & 0x7FFFFFFFU;
  const std::uint32_t normal = (magnitude - (112U << 23) + 0xFFFU + ((magnitude >> 13) & 1U)) >> 13;
  const std::uint32_t denormal =
      std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + 0.5F) - 0x3F000000U;
  std::uint32_t result = magnitude < 0x38800000U ? denormal : normal;  // 2^-14
  result = magnitude >= 0x477FF000U ? 0x7C00U : result;                // 65520: halfway to 2^16
  result = magnitude > 0x7F800000U ? 0x7E00U : result;
  return {static_cast<std::uint16_t>(sign | result)};
}

}  // namespace zerolab
