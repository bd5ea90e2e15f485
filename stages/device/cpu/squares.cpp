#include <algorithm>
#include <bit>

#include "stages/device/cpu/cpu_device.hpp"
#include "stages/device/cpu/typed.hpp"

namespace zerolab {
namespace {

constexpr std::size_t kNotFinite = SquareSum::kExponents - 1;

// Neighbours mostly have the same exponent, and adding to one word again and again waits for the
// store before: several sets of buckets take turns.
constexpr Index kSets = 4;
using Buckets = std::array<std::array<std::uint64_t, SquareSum::kExponents>, kSets>;

// A square has 48 bits, so this many of them fit in 64.
constexpr Index kSquaresPerSet = Index{1} << 16;

void add_square(std::array<std::uint64_t, SquareSum::kExponents>& buckets, float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t exponent = (bits >> 23) & 0xFFU;
  const std::uint32_t hidden = exponent != 0 ? 0x800000U : 0U;
  const std::uint64_t significand = (bits & 0x7FFFFFU) | hidden;
  buckets[exponent] += significand * significand;
}

template <typename T>
void count_not_finite(SquareSum& sum, const T* in, Index n) {
  for (Index i = 0; i < n; ++i) {
    const std::uint32_t magnitude = std::bit_cast<std::uint32_t>(widened(in[i])) & 0x7FFFFFFFU;
    if (magnitude >= 0x7F800000U) ++sum.bucket[kNotFinite][magnitude > 0x7F800000U ? 1 : 0];
  }
}

template <typename T>
SquareSum sum_squares(const T* in, Index n) {
  SquareSum total;
  for (Index begin = 0; begin < n; begin += kSets * kSquaresPerSet) {
    const T* part = in + begin;
    const Index count = std::min(kSets * kSquaresPerSet, n - begin);
    Buckets sets{};
    Index i = 0;
    for (; i + kSets <= count; i += kSets) {
      for (Index set = 0; set < kSets; ++set) {
        add_square(sets[static_cast<std::size_t>(set)], widened(part[i + set]));
      }
    }
    for (; i < count; ++i) add_square(sets[0], widened(part[i]));

    SquareSum partial;
    bool finite = true;
    for (const auto& buckets : sets) {
      for (std::size_t e = 0; e < kNotFinite; ++e) {
        auto& [low, high] = partial.bucket[e];
        low += buckets[e];
        high += low < buckets[e] ? 1U : 0U;
      }
      finite = finite && buckets[kNotFinite] == 0;
    }
    if (!finite) count_not_finite(partial, part, count);
    total += partial;
  }
  return total;
}

}  // namespace

SquareSum CpuDevice::square_sum(ConstValues in, Index n) {
  return typed(in, [n](const auto* values) { return sum_squares(values, n); });
}

}  // namespace zerolab
