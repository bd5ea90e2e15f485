#include <algorithm>
#include <bit>
#include <cstring>
#include <numeric>

#include "stages/base/hash.hpp"
#include "stages/base/philox.hpp"
#include "stages/device/cpu/cpu_device.hpp"
#include "stages/device/formulas.hpp"

// One loop each, which the compiler vectorises: elements do not depend on each other, so their bits
// do not depend on how it does that.

namespace zerolab {

void CpuDevice::positions(Index rows, Index length, std::int32_t* out) {
  for (Index row = 0; row < rows; ++row) {
    std::iota(out + row * length, out + (row + 1) * length, 0);
  }
}

void CpuDevice::upload(void* out, const void* host, Index bytes) {
  if (bytes > 0) std::memcpy(out, host, static_cast<std::size_t>(bytes));
}

void CpuDevice::download(void* host, const void* in, Index bytes) { upload(host, in, bytes); }

void CpuDevice::fill(float* out, Index n, float value) { std::fill_n(out, n, value); }

void CpuDevice::copy(float* out, const float* in, Index n) {
  if (n > 0) std::memmove(out, in, static_cast<std::size_t>(n) * sizeof(float));
}

void CpuDevice::add(float* out, const float* in, Index n) {
  for (Index i = 0; i < n; ++i) out[i] += in[i];
}

void CpuDevice::ordered_sum(std::span<const float* const> parts, Index n, float factor,
                            float* out) {
  if (parts.empty()) return fill(out, n, 0.0F);
  // Block by block, so that `out` is written once, after all the parts were read.
  constexpr Index kBlock = 1024;
  float sum[kBlock];
  for (Index begin = 0; begin < n; begin += kBlock) {
    const Index count = std::min(kBlock, n - begin);
    std::copy_n(parts[0] + begin, count, sum);
    for (const float* part : parts.subspan(1)) {
      for (Index i = 0; i < count; ++i) sum[i] += part[begin + i];
    }
    for (Index i = 0; i < count; ++i) out[begin + i] = sum[i] * factor;
  }
}

void CpuDevice::random_normal(float* out, Index first, Index n, std::uint64_t seed,
                              std::uint64_t tensor, float deviation) {
  const Philox philox(seed);
  for (Index i = 0; i < n; ++i) {
    out[i] = almost_normal(philox(tensor, static_cast<std::uint64_t>(first + i)), deviation);
  }
}

void CpuDevice::adam(const AdamUpdate& update, Index n, const float* gradient, float* master,
                     float* moment1, float* moment2) {
  const AdamUpdate u = update;  // a copy no store can alias, or the loop is not vectorised
  for (Index i = 0; i < n; ++i) adam_element(u, gradient[i], master[i], moment1[i], moment2[i]);
}

void CpuDevice::sgd(const SgdUpdate& update, Index n, const float* gradient, float* master,
                    float* momentum) {
  const SgdUpdate u = update;
  if (momentum == nullptr) {
    for (Index i = 0; i < n; ++i) sgd_element(u, gradient[i], master[i], nullptr);
  } else {
    for (Index i = 0; i < n; ++i) sgd_element(u, gradient[i], master[i], momentum + i);
  }
}

std::uint64_t CpuDevice::hash(std::uint64_t parameter, Index first, const float* in, Index n) {
  std::uint64_t sum = 0;
  for (Index i = 0; i < n; ++i) {
    sum += hash_element(parameter, static_cast<std::uint64_t>(first + i),
                        std::bit_cast<std::uint32_t>(in[i]));
  }
  return sum;
}

}  // namespace zerolab
