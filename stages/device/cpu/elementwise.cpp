#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <numeric>

#include "stages/base/hash.hpp"
#include "stages/base/philox.hpp"
#include "stages/device/cpu/cpu_device.hpp"
#include "stages/device/cpu/typed.hpp"
#include "stages/device/formulas.hpp"

// One loop each, which the compiler vectorises: elements do not depend on each other, so their bits
// do not depend on how it does that. What is 16-bit goes through a block of floats.

namespace zerolab {
namespace {

constexpr Index kBlock = 1024;

template <typename Work>
void by_blocks(Index n, Work work) {
  for (Index begin = 0; begin < n; begin += kBlock) work(begin, std::min(kBlock, n - begin));
}

template <typename T>
RoundingLoss round_block(const float* in, Index n, T* out) {
  std::int32_t not_zero = 0, flushed = 0;
  for (Index i = 0; i < n; ++i) {
    out[i] = rounded<T>(in[i]);
    not_zero += static_cast<std::int32_t>(in[i] != 0);
    flushed += static_cast<std::int32_t>(in[i] != 0 && (out[i].bits & 0x7FFFU) == 0);
  }
  return {not_zero, flushed};
}

// Rounds to the type of `out`.
RoundingLoss round_into(const float* in, Index n, Values out) {
  RoundingLoss loss;
  typed(out, [&](auto* values) {
    if constexpr (std::is_same_v<decltype(values), float*>) {
      if (n > 0) std::memmove(values, in, static_cast<std::size_t>(n) * sizeof(float));
    } else {
      by_blocks(n, [&](Index begin, Index count) {
        loss += round_block(in + begin, count, values + begin);
      });
    }
  });
  return loss;
}

template <typename T>
[[gnu::always_inline]] inline std::uint64_t sum_of_hashes(std::uint64_t parameter, Index first,
                                                          const T* values, Index n) {
  std::uint64_t sum = 0;
  for (Index i = 0; i < n; ++i) {
    sum += hash_element(parameter, static_cast<std::uint64_t>(first + i),
                        std::bit_cast<std::uint32_t>(widened(values[i])));
  }
  return sum;
}

// Hashing is products of 64 bits. AVX-512 has eight of them in an instruction, which no x86-64 must
// have: three times as fast.
#if defined(__x86_64__) && !defined(__clang__)
template <typename T>
[[gnu::target("avx512f,avx512dq,prefer-vector-width=512")]] std::uint64_t wide_sum_of_hashes(
    std::uint64_t parameter, Index first, const T* values, Index n) {
  return sum_of_hashes(parameter, first, values, n);
}
bool has_wide_products() { return __builtin_cpu_supports("avx512dq") != 0; }
#else
template <typename T>
std::uint64_t wide_sum_of_hashes(std::uint64_t parameter, Index first, const T* values, Index n) {
  return sum_of_hashes(parameter, first, values, n);
}
bool has_wide_products() { return false; }
#endif

}  // namespace

void CpuDevice::store(const float* in, Index n, Values out) {
  rounding_loss_ += round_into(in, n, out);
}

RoundingLoss CpuDevice::rounding_loss() const { return rounding_loss_; }

RoundingLoss CpuDevice::rounding_loss_of_sums() const { return {rounded_sums_, flushed_sums_}; }

void CpuDevice::positions(Index rows, Index length, std::int32_t* out) {
  for (Index row = 0; row < rows; ++row) {
    std::iota(out + row * length, out + (row + 1) * length, 0);
  }
}

void CpuDevice::upload(void* out, const void* host, Index bytes) {
  if (bytes > 0) std::memcpy(out, host, static_cast<std::size_t>(bytes));
}

void CpuDevice::download(void* host, const void* in, Index bytes) { upload(host, in, bytes); }

void CpuDevice::fill(Values out, Index n, float value) {
  typed(out, [&](auto* values) {
    std::fill_n(values, n, rounded<std::remove_pointer_t<decltype(values)>>(value));
  });
}

void CpuDevice::copy(Values out, ConstValues in, Index n) {
  if (n == 0) return;
  if (out.dtype() == in.dtype()) {
    std::memmove(out.data(), in.data(), static_cast<std::size_t>(n * size_of(in.dtype())));
    return;
  }
  float block[kBlock];
  by_blocks(n, [&](Index begin, Index count) {
    widen(in + begin, count, block);
    store(block, count, out + begin);
  });
}

void CpuDevice::add(Values out, ConstValues in, Index n) {
  if (out.dtype() == Dtype::fp32) {
    float* sums = out.floats();
    return typed(in, [&](const auto* values) {
      for (Index i = 0; i < n; ++i) sums[i] += widened(values[i]);
    });
  }
  float a[kBlock], b[kBlock];
  by_blocks(n, [&](Index begin, Index count) {
    widen(out + begin, count, a);
    widen(in + begin, count, b);
    for (Index i = 0; i < count; ++i) a[i] += b[i];
    store(a, count, out + begin);
  });
}

void CpuDevice::scale(Values values, Index n, float factor) {
  float block[kBlock];
  by_blocks(n, [&](Index begin, Index count) {
    widen(values + begin, count, block);
    for (Index i = 0; i < count; ++i) block[i] *= factor;
    store(block, count, values + begin);
  });
}

void CpuDevice::ordered_sum(std::span<const ConstValues> parts, Index n, float factor, Values out) {
  if (parts.empty()) return fill(out, n, 0.0F);
  // `out` is written once, after all the parts were read.
  float sum[kBlock];
  RoundingLoss loss;
  by_blocks(n, [&](Index begin, Index count) {
    widen(parts[0] + begin, count, sum);
    for (const ConstValues part : parts.subspan(1)) {
      typed(part + begin, [&](const auto* values) {
        for (Index i = 0; i < count; ++i) sum[i] += widened(values[i]);
      });
    }
    for (Index i = 0; i < count; ++i) sum[i] *= factor;
    loss += round_into(sum, count, out + begin);
  });
  rounded_sums_ += loss.rounded;
  flushed_sums_ += loss.flushed;
}

void CpuDevice::random_normal(Values out, Index first, Index n, std::uint64_t seed,
                              std::uint64_t tensor, float deviation) {
  const Philox philox(seed);
  float block[kBlock];
  by_blocks(n, [&](Index begin, Index count) {
    for (Index i = 0; i < count; ++i) {
      block[i] =
          almost_normal(philox(tensor, static_cast<std::uint64_t>(first + begin + i)), deviation);
    }
    store(block, count, out + begin);
  });
}

void CpuDevice::adam(const AdamUpdate& update, Index n, ConstValues gradient, float* master,
                     float* moment1, float* moment2) {
  const AdamUpdate u = update;  // a copy no store can alias, or the loop is not vectorised
  typed(gradient, [&](const auto* g) {
    for (Index i = 0; i < n; ++i) {
      adam_element(u, widened(g[i]), master[i], moment1[i], moment2[i]);
    }
  });
}

void CpuDevice::sgd(const SgdUpdate& update, Index n, ConstValues gradient, float* master,
                    float* momentum) {
  const SgdUpdate u = update;
  typed(gradient, [&](const auto* g) {
    if (momentum == nullptr) {
      for (Index i = 0; i < n; ++i) sgd_element(u, widened(g[i]), master[i], nullptr);
    } else {
      for (Index i = 0; i < n; ++i) sgd_element(u, widened(g[i]), master[i], momentum + i);
    }
  });
}

void CpuDevice::follow(ConstValues weights, Index n, float* master) {
  typed(weights, [&](const auto* values) {
    using T = std::remove_cv_t<std::remove_pointer_t<decltype(values)>>;
    for (Index i = 0; i < n; ++i) {
      const float weight = widened(values[i]);
      const bool same = std::bit_cast<std::uint32_t>(widened(rounded<T>(master[i]))) ==
                        std::bit_cast<std::uint32_t>(weight);
      master[i] = same ? master[i] : weight;
    }
  });
}

bool CpuDevice::finite(ConstValues in, Index n) {
  return typed(in, [&](const auto* values) {
    std::uint32_t not_finite = 0;  // exponent field 255 and one more reach bit 8
    for (Index i = 0; i < n; ++i) {
      const std::uint32_t exponent = std::bit_cast<std::uint32_t>(widened(values[i])) >> 23 & 0xFFU;
      not_finite |= exponent + 1;
    }
    return (not_finite & 0x100U) == 0;
  });
}

std::uint64_t CpuDevice::hash(std::uint64_t parameter, Index first, ConstValues in, Index n) {
  return typed(in, [&](const auto* values) {
    return has_wide_products() ? wide_sum_of_hashes(parameter, first, values, n)
                               : sum_of_hashes(parameter, first, values, n);
  });
}

}  // namespace zerolab
