#pragma once

#include <cstdint>

#include "stages/base/host_device.hpp"

namespace zerolab {

/// The finaliser of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014): every input bit reaches every
/// output bit.
ZEROLAB_HOST_DEVICE constexpr std::uint64_t mix64(std::uint64_t x) {
  x ^= x >> 30;
  x *= 0xBF58476D1CE4E5B9;
  x ^= x >> 27;
  x *= 0x94D049BB133111EB;
  return x ^ (x >> 31);
}

/// What one element adds to the parameter hash: the sum modulo 2^64 over all elements does not
/// depend on who holds which of them.
ZEROLAB_HOST_DEVICE constexpr std::uint64_t hash_element(std::uint64_t parameter,
                                                         std::uint64_t element,
                                                         std::uint32_t bits) {
  return mix64(mix64(parameter * 0x9E3779B97F4A7C15 + element + 1) ^ bits);
}

}  // namespace zerolab
