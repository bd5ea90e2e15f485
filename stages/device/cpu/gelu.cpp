#include <algorithm>

#include "stages/device/cpu/cpu_device.hpp"
#include "stages/device/cpu/primitives.hpp"
#include "stages/device/cpu/typed.hpp"

// 1 + tanh(u) = 2 / (1 + exp(-2u)), so GELU's tanh approximation is x * logistic(2u) with
// u = sqrt(2 / pi) (x + 0.044715 x^3). oneDNN's logistic takes 0.7 ns an element with AVX2, its
// tanh 4 ns.

namespace zerolab {
namespace {

constexpr float kTwice = 1.5957691216F;  // 2 sqrt(2 / pi)
constexpr float kCubic = 0.044715F;
constexpr Index kBlock = 2048;  // stays in the first-level cache

// gate[i] = logistic(2 u(x[i])).
void compute_gate(Primitives& primitives, Index n, const float* x, float* gate) {
  for (Index i = 0; i < n; ++i) gate[i] = kTwice * (x[i] + kCubic * (x[i] * x[i] * x[i]));
  primitives.run(RowCall{RowOperation::logistic, 1, n},
                 {{DNNL_ARG_SRC, gate}, {DNNL_ARG_DST, gate}});
}

}  // namespace

void CpuDevice::gelu(Index n, ConstValues x, Values y) {
  float at[kBlock], gate[kBlock];
  for (Index begin = 0; begin < n; begin += kBlock) {
    const Index count = std::min(kBlock, n - begin);
    widen(x + begin, count, at);
    compute_gate(*primitives_, count, at, gate);
    for (Index i = 0; i < count; ++i) gate[i] *= at[i];
    store(gate, count, y + begin);
  }
}

void CpuDevice::gelu_backward(Index n, ConstValues x, ConstValues dy, Values dx) {
  float at[kBlock], gate[kBlock], d[kBlock];
  for (Index begin = 0; begin < n; begin += kBlock) {
    const Index count = std::min(kBlock, n - begin);
    widen(x + begin, count, at);
    widen(dy + begin, count, d);
    compute_gate(*primitives_, count, at, gate);
    for (Index i = 0; i < count; ++i) {
      const float slope = kTwice * (1.0F + 3.0F * kCubic * (at[i] * at[i]));
      d[i] = d[i] * (gate[i] + at[i] * slope * (gate[i] * (1.0F - gate[i])));
    }
    store(d, count, dx + begin);
  }
}

}  // namespace zerolab
