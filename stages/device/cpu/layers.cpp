#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <limits>
#include <numeric>

#include "stages/device/cpu/cpu_device.hpp"
#include "stages/device/cpu/primitives.hpp"
#include "stages/device/cpu/widened.hpp"

// What the layers of a model need. oneDNN refuses or ignores empty tensors case by case, so every
// function decides for itself what nothing amounts to.

namespace zerolab {
namespace {

// The order of addition is written down, so that vectors of any length give the same bits.
float dot(const float* a, const float* b, Index n) {
  constexpr Index kLanes = 16;
  float lane[kLanes] = {};
  Index i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (Index l = 0; l < kLanes; ++l) lane[l] += a[i + l] * b[i + l];
  }
  for (Index l = 0; i + l < n; ++l) lane[l] += a[i + l] * b[i + l];
  for (Index half = kLanes / 2; half > 0; half /= 2) {
    for (Index l = 0; l < half; ++l) lane[l] += lane[l + half];
  }
  return lane[0];
}

}  // namespace

CpuDevice::CpuDevice(Ledger& ledger, int threads)
    : ledger_(ledger), primitives_(std::make_unique<Primitives>(ledger, threads)) {}

CpuDevice::~CpuDevice() = default;

Buffer CpuDevice::workspace(Index elements) {
  return ledger_.allocate(elements * size_of(Dtype::fp32), Category::workspace,
                          "16-bit values as fp32");
}

std::string CpuDevice::description() const {
  const int threads = primitives_->threads();
  return fmt::format("cpu (oneDNN {}, {}, {} thread{})", onednn::version(),
                     onednn::instruction_set(), threads, threads == 1 ? "" : "s");
}

void CpuDevice::sum_rows(Index rows, Index n, ConstValues in, Values out) {
  Widened wide(*this, out.dtype(), n);
  float* sum = wide.place(out);
  fill(sum, n, 0.0F);
  for (Index row = 0; row < rows; ++row) add(sum, in + row * n, n);
  wide.store(out, n);
}

void CpuDevice::layer_norm(Index rows, Index width, float epsilon, ConstValues x, ConstValues gamma,
                           ConstValues beta, Values y, float* mean, float* variance) {
  if (rows == 0) return;
  if (width == 0) {
    fill(mean, rows, 0.0F);
    fill(variance, rows, 0.0F);
    return;
  }
  const Index most = rows_at_a_time(x.dtype(), rows, width);
  Widened gains(*this, gamma.dtype(), width), shifts(*this, beta.dtype(), width);
  Widened ins(*this, x.dtype(), most * width), outs(*this, y.dtype(), most * width);
  const float* gain = gains.read(gamma, width);
  const float* shift = shifts.read(beta, width);
  for (Index row = 0; row < rows; row += most) {
    const Index count = std::min(most, rows - row), n = count * width;
    const Values out = y + row * width;
    primitives_->run(RowCall{RowOperation::layer_norm, count, width, epsilon},
                     {{DNNL_ARG_SRC, ins.read(x + row * width, n)},
                      {DNNL_ARG_SCALE, gain},
                      {DNNL_ARG_SHIFT, shift},
                      {DNNL_ARG_DST, outs.place(out)},
                      {DNNL_ARG_MEAN, mean + row},
                      {DNNL_ARG_VARIANCE, variance + row}});
    outs.store(out, n);
  }
}

void CpuDevice::layer_norm_backward(Index rows, Index width, float epsilon, ConstValues x,
                                    ConstValues gamma, const float* mean, const float* variance,
                                    ConstValues dy, Values dx, Values dgamma, Values dbeta) {
  if (rows == 0 || width == 0) {
    fill(dgamma, width, 0.0F);
    fill(dbeta, width, 0.0F);
    return;
  }
  const Index most = rows_at_a_time(x.dtype(), rows, width);
  Widened gains(*this, gamma.dtype(), width);
  Widened gain_sums(*this, dgamma.dtype(), width), shift_sums(*this, dbeta.dtype(), width);
  Widened ins(*this, x.dtype(), most * width), gradients(*this, dy.dtype(), most * width);
  Widened outs(*this, dx.dtype(), most * width);
  const float* gain = gains.read(gamma, width);
  float* gain_sum = gain_sums.place(dgamma);
  float* shift_sum = shift_sums.place(dbeta);
  // The sums over the first rows are made in place, those over later ones beside them and added.
  Buffer later;
  if (most < rows) later = workspace(2 * width);
  for (Index row = 0; row < rows; row += most) {
    const Index count = std::min(most, rows - row), n = count * width;
    const Values out = dx + row * width;
    float* dgain = row == 0 ? gain_sum : later.floats();
    float* dshift = row == 0 ? shift_sum : later.floats() + width;
    primitives_->run(RowCall{RowOperation::layer_norm_backward, count, width, epsilon},
                     {{DNNL_ARG_SRC, ins.read(x + row * width, n)},
                      {DNNL_ARG_SCALE, gain},
                      {DNNL_ARG_SHIFT, gain},  // 2.6 insists on one and does not read it
                      {DNNL_ARG_MEAN, mean + row},
                      {DNNL_ARG_VARIANCE, variance + row},
                      {DNNL_ARG_DIFF_DST, gradients.read(dy + row * width, n)},
                      {DNNL_ARG_DIFF_SRC, outs.place(out)},
                      {DNNL_ARG_DIFF_SCALE, dgain},
                      {DNNL_ARG_DIFF_SHIFT, dshift}});
    outs.store(out, n);
    if (row == 0) continue;
    add(gain_sum, dgain, width);
    add(shift_sum, dshift, width);
  }
  gain_sums.store(dgamma, width);
  shift_sums.store(dbeta, width);
}

void CpuDevice::causal_softmax(Index batch, Index length, float factor, Values scores) {
  const auto change = [&](float* block, Index first, Index count) {
    for (Index row = 0; row < count; ++row) {
      float* score = block + row * length;
      const Index seen = (first + row) % length + 1;
      for (Index i = 0; i < seen; ++i) score[i] *= factor;
      std::fill(score + seen, score + length, -std::numeric_limits<float>::infinity());
    }
    primitives_->run(RowCall{RowOperation::softmax, count, length},
                     {{DNNL_ARG_SRC, block}, {DNNL_ARG_DST, block}});
  };
  Widened::change_rows(*this, scores, batch * length, length, change);
}

void CpuDevice::causal_softmax_backward(Index batch, Index length, float factor,
                                        ConstValues probabilities, Values dscores) {
  const Index rows = batch * length;
  if (rows == 0) return;
  Widened wide(*this, probabilities.dtype(),
               rows_at_a_time(dscores.dtype(), rows, length) * length);
  // oneDNN 2.6 has only its reference code for this below AVX-512: 36 ns an element.
  const auto change = [&](float* block, Index first, Index count) {
    const float* p = wide.read(probabilities + first * length, count * length);
    for (Index row = 0; row < count; ++row) {
      const float* probability = p + row * length;
      float* dscore = block + row * length;
      const Index seen = (first + row) % length + 1;
      const float mean = dot(probability, dscore, seen);
      for (Index i = 0; i < seen; ++i) dscore[i] = factor * (probability[i] * (dscore[i] - mean));
      std::fill(dscore + seen, dscore + length, 0.0F);
    }
  };
  Widened::change_rows(*this, dscores, rows, length, change);
}

void CpuDevice::embedding(Index count, Index width, const std::int32_t* tokens, ConstValues table,
                          Values out) {
  for (Index i = 0; i < count; ++i) copy(out + i * width, table + tokens[i] * width, width);
}

void CpuDevice::embedding_backward(Index count, Index width, Index vocabulary,
                                   const std::int32_t* tokens, ConstValues dout, Values dtable) {
  fill(dtable, vocabulary * width, 0.0F);
  if (count == 0) return;
  // One row of the table after the other, each over the places of its token in their order, so that
  // a sum that has 16 bits in the end is rounded once.
  Buffer buffer =
      ledger_.allocate(count * size_of(Dtype::int32), Category::workspace, "places of tokens");
  auto* places = reinterpret_cast<std::int32_t*>(buffer.data());
  std::iota(places, places + count, 0);
  std::sort(places, places + count, [tokens](std::int32_t a, std::int32_t b) {
    return tokens[a] != tokens[b] ? tokens[a] < tokens[b] : a < b;
  });
  Widened wide(*this, dtable.dtype(), width);
  for (Index i = 0; i < count;) {
    const std::int32_t token = tokens[places[i]];
    assert(token >= 0 && token < vocabulary);
    const Values row = dtable + token * width;
    float* sum = wide.load(row, width);
    for (; i < count && tokens[places[i]] == token; ++i) add(sum, dout + places[i] * width, width);
    wide.store(row, width);
  }
}

// fp32 logits become log-probabilities. 16-bit ones stay: rounded, the logarithms would be too
// coarse to take their exponentials.
double CpuDevice::cross_entropy(Index rows, Index classes, const std::int32_t* targets,
                                Values logits) {
  double loss = 0;
  if (rows == 0 || classes == 0) return loss;
  const Index most = rows_at_a_time(logits.dtype(), rows, classes);
  Widened wide(*this, logits.dtype(), most * classes);
  for (Index first = 0; first < rows; first += most) {
    const Index count = std::min(most, rows - first);
    float* block = wide.load(logits + first * classes, count * classes);
    primitives_->run(RowCall{RowOperation::log_softmax, count, classes},
                     {{DNNL_ARG_SRC, block}, {DNNL_ARG_DST, block}});
    for (Index row = 0; row < count; ++row) {
      const Index target = targets[first + row];
      assert(target < classes);
      if (target < 0) continue;
      loss -= static_cast<double>(block[row * classes + target]);
    }
  }
  return loss;
}

void CpuDevice::cross_entropy_backward(Index rows, Index classes, float factor,
                                       const std::int32_t* targets, Values logits) {
  const auto change = [&](float* block, Index first, Index count) {
    const auto run = [&](RowOperation operation) {
      primitives_->run(RowCall{operation, count, classes},
                       {{DNNL_ARG_SRC, block}, {DNNL_ARG_DST, block}});
    };
    if (logits.dtype() != Dtype::fp32) run(RowOperation::log_softmax);
    run(RowOperation::exponential);
    for (Index row = 0; row < count; ++row) {
      float* dlogits = block + row * classes;
      const Index target = targets[first + row];
      if (target < 0) {
        std::fill_n(dlogits, classes, 0.0F);
        continue;
      }
      for (Index i = 0; i < classes; ++i) dlogits[i] *= factor;
      dlogits[target] -= factor;
    }
  };
  Widened::change_rows(*this, logits, rows, classes, change);
}

}  // namespace zerolab
