#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <limits>

#include "stages/device/cpu/cpu_device.hpp"
#include "stages/device/cpu/primitives.hpp"

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

// A product over nothing: the bias, or zero.
void fill_product(const Product& p, const float* bias, float* c) {
  for (Index outer = 0; outer < p.outer; ++outer) {
    for (Index inner = 0; inner < p.inner; ++inner) {
      float* matrix = c + outer * p.c.outer_stride + inner * p.c.inner_stride;
      for (Index row = 0; row < p.m; ++row) {
        float* out = matrix + row * p.c.leading;
        if (p.bias) {
          std::copy_n(bias, p.n, out);
        } else {
          std::fill_n(out, p.n, 0.0F);
        }
      }
    }
  }
}

}  // namespace

CpuDevice::CpuDevice(Ledger& ledger, int threads)
    : primitives_(std::make_unique<Primitives>(ledger, threads)) {}

CpuDevice::~CpuDevice() = default;

std::string CpuDevice::description() const {
  const int threads = primitives_->threads();
  return fmt::format("cpu (oneDNN {}, {}, {} thread{})", onednn::version(),
                     onednn::instruction_set(), threads, threads == 1 ? "" : "s");
}

void CpuDevice::matmul(const Product& shape, const float* a, const float* b, const float* bias,
                       float* c) {
  Product product = shape;
  product.bias = bias != nullptr;
  if (product.outer * product.inner * product.m * product.n == 0) return;
  if (product.k == 0) return fill_product(product, bias, c);
  if (product.bias) {
    primitives_->run(
        product,
        {{DNNL_ARG_SRC, a}, {DNNL_ARG_WEIGHTS, b}, {DNNL_ARG_BIAS, bias}, {DNNL_ARG_DST, c}});
  } else {
    primitives_->run(product, {{DNNL_ARG_SRC, a}, {DNNL_ARG_WEIGHTS, b}, {DNNL_ARG_DST, c}});
  }
}

void CpuDevice::sum_rows(Index rows, Index n, const float* in, float* out) {
  fill(out, n, 0.0F);
  for (Index row = 0; row < rows; ++row) add(out, in + row * n, n);
}

void CpuDevice::layer_norm(Index rows, Index width, float epsilon, const float* x,
                           const float* gamma, const float* beta, float* y, float* mean,
                           float* variance) {
  if (rows == 0) return;
  if (width == 0) {
    fill(mean, rows, 0.0F);
    fill(variance, rows, 0.0F);
    return;
  }
  primitives_->run(RowCall{RowOperation::layer_norm, rows, width, epsilon},
                   {{DNNL_ARG_SRC, x},
                    {DNNL_ARG_SCALE, gamma},
                    {DNNL_ARG_SHIFT, beta},
                    {DNNL_ARG_DST, y},
                    {DNNL_ARG_MEAN, mean},
                    {DNNL_ARG_VARIANCE, variance}});
}

void CpuDevice::layer_norm_backward(Index rows, Index width, float epsilon, const float* x,
                                    const float* gamma, const float* mean, const float* variance,
                                    const float* dy, float* dx, float* dgamma, float* dbeta) {
  if (rows == 0 || width == 0) {
    fill(dgamma, width, 0.0F);
    fill(dbeta, width, 0.0F);
    return;
  }
  primitives_->run(RowCall{RowOperation::layer_norm_backward, rows, width, epsilon},
                   {{DNNL_ARG_SRC, x},
                    {DNNL_ARG_SCALE, gamma},
                    {DNNL_ARG_SHIFT, gamma},  // 2.6 insists on one and does not read it
                    {DNNL_ARG_MEAN, mean},
                    {DNNL_ARG_VARIANCE, variance},
                    {DNNL_ARG_DIFF_DST, dy},
                    {DNNL_ARG_DIFF_SRC, dx},
                    {DNNL_ARG_DIFF_SCALE, dgamma},
                    {DNNL_ARG_DIFF_SHIFT, dbeta}});
}

void CpuDevice::causal_softmax(Index batch, Index length, float factor, float* scores) {
  const Index rows = batch * length;
  if (rows == 0) return;
  for (Index row = 0; row < rows; ++row) {
    float* score = scores + row * length;
    const Index seen = row % length + 1;
    for (Index i = 0; i < seen; ++i) score[i] *= factor;
    std::fill(score + seen, score + length, -std::numeric_limits<float>::infinity());
  }
  primitives_->run(RowCall{RowOperation::softmax, rows, length},
                   {{DNNL_ARG_SRC, scores}, {DNNL_ARG_DST, scores}});
}

void CpuDevice::causal_softmax_backward(Index batch, Index length, float factor,
                                        const float* probabilities, float* dscores) {
  // oneDNN 2.6 has only its reference code for this below AVX-512: 36 ns an element.
  for (Index row = 0; row < batch * length; ++row) {
    const float* probability = probabilities + row * length;
    float* dscore = dscores + row * length;
    const Index seen = row % length + 1;
    const float mean = dot(probability, dscore, seen);
    for (Index i = 0; i < seen; ++i) dscore[i] = factor * (probability[i] * (dscore[i] - mean));
    std::fill(dscore + seen, dscore + length, 0.0F);
  }
}

void CpuDevice::embedding(Index count, Index width, const std::int32_t* tokens, const float* table,
                          float* out) {
  for (Index i = 0; i < count; ++i) copy(out + i * width, table + tokens[i] * width, width);
}

void CpuDevice::embedding_backward(Index count, Index width, Index vocabulary,
                                   const std::int32_t* tokens, const float* dout, float* dtable) {
  fill(dtable, vocabulary * width, 0.0F);
  for (Index i = 0; i < count; ++i) {
    assert(tokens[i] >= 0 && tokens[i] < vocabulary);
    add(dtable + tokens[i] * width, dout + i * width, width);
  }
}

double CpuDevice::cross_entropy(Index rows, Index classes, const std::int32_t* targets,
                                float* logits) {
  double loss = 0;
  if (rows == 0 || classes == 0) return loss;
  primitives_->run(RowCall{RowOperation::log_softmax, rows, classes},
                   {{DNNL_ARG_SRC, logits}, {DNNL_ARG_DST, logits}});
  for (Index row = 0; row < rows; ++row) {
    assert(targets[row] >= 0 && targets[row] < classes);
    loss -= static_cast<double>(logits[row * classes + targets[row]]);
  }
  return loss;
}

void CpuDevice::cross_entropy_backward(Index rows, Index classes, float factor,
                                       const std::int32_t* targets, float* logits) {
  if (rows == 0 || classes == 0) return;
  primitives_->run(RowCall{RowOperation::exponential, rows, classes},
                   {{DNNL_ARG_SRC, logits}, {DNNL_ARG_DST, logits}});
  for (Index row = 0; row < rows; ++row) {
    float* dlogits = logits + row * classes;
    for (Index i = 0; i < classes; ++i) dlogits[i] *= factor;
    dlogits[targets[row]] -= factor;
  }
}

}  // namespace zerolab
