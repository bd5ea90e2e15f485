#pragma once

#include <array>
#include <cstdint>

#include "stages/base/host_device.hpp"

namespace zerolab {

/// Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011): a
/// counter-based generator, so any element of a random tensor is computed on its own.
struct Philox {
  std::uint32_t key[2];

  ZEROLAB_HOST_DEVICE explicit constexpr Philox(std::uint64_t seed)
      : key{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)} {}

  struct Block {
    std::uint32_t word[4];
  };

  /// The four words at counter (high, low).
  ZEROLAB_HOST_DEVICE constexpr Block operator()(std::uint64_t high, std::uint64_t low) const {
    Block x{{static_cast<std::uint32_t>(low), static_cast<std::uint32_t>(low >> 32),
             static_cast<std::uint32_t>(high), static_cast<std::uint32_t>(high >> 32)}};
    std::uint32_t k0 = key[0];
    std::uint32_t k1 = key[1];
    for (int round = 0; round < 10; ++round) {
      const std::uint64_t p0 = std::uint64_t{0xD2511F53} * x.word[0];
      const std::uint64_t p1 = std::uint64_t{0xCD9E8D57} * x.word[2];
      x = Block{
          {static_cast<std::uint32_t>(p1 >> 32) ^ x.word[1] ^ k0, static_cast<std::uint32_t>(p1),
           static_cast<std::uint32_t>(p0 >> 32) ^ x.word[3] ^ k1, static_cast<std::uint32_t>(p0)}};
      k0 += 0x9E3779B9;
      k1 += 0xBB67AE85;
    }
    return x;
  }
};

/// One sample close to the standard normal distribution: the sum of eight 16-bit uniforms, centred
/// and scaled to variance 1. Integers and one multiplication: no libm, so CPU and GPU agree.
ZEROLAB_HOST_DEVICE constexpr float almost_normal(const Philox::Block& block, float deviation) {
  std::int32_t sum = 0;
  for (const std::uint32_t word : block.word) {
    sum += static_cast<std::int32_t>(word & 0xFFFFU);
    sum += static_cast<std::int32_t>(word >> 16);
  }
  // mean 8 * 65535 / 2; variance 8 * (65536^2 - 1) / 12, whose square root is 53509.92.
  constexpr float kPerUnit = static_cast<float>(1.0 / 53509.91992145);
  return static_cast<float>(sum - 4 * 65535) * (kPerUnit * deviation);
}

}  // namespace zerolab
