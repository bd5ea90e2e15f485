#pragma once

#include <array>
#include <cstdint>
#include <memory_resource>
#include <span>
#include <string>

#include "stages/base/types.hpp"

namespace zerolab {

/// How one operand of a product lies in memory: row-major with `leading` elements from row to row;
/// `transposed` means the memory holds the transpose of what the product uses. The strides lead
/// from one product of a batch to the next.
struct Operand {
  Index leading = 0;
  bool transposed = false;
  Index outer_stride = 0;
  Index inner_stride = 0;

  auto operator<=>(const Operand&) const = default;
};

/// The shape of outer x inner products C[m, n] = A[m, k] B[k, n] (+ bias[n] on every row).
struct Product {
  Index m = 0, n = 0, k = 0;
  Operand a, b, c;  // c is never transposed
  bool bias = false;
  Index outer = 1, inner = 1;

  auto operator<=>(const Product&) const = default;
};

/// What one element-wise Adam or SGD update needs (formulas in device/formulas.hpp).
struct AdamUpdate {
  float learning_rate = 0, beta1 = 0, beta2 = 0, epsilon = 0, weight_decay = 0;
  bool decoupled = true;      // AdamW: decay the weights, not the gradient
  float correction1 = 1;      // 1 - beta1^t
  float correction2 = 1;      // 1 - beta2^t
  float gradient_factor = 1;  // clipping
};
struct SgdUpdate {
  float learning_rate = 0, momentum = 0, weight_decay = 0;
  bool first = false;  // the momentum buffer holds nothing yet
  float gradient_factor = 1;
};

/// The exact sum of squares of fp32 values: for every exponent field the sum of the squared 24-bit
/// significands, as a 128-bit integer (low, high). The sum does not depend on the order or on how
/// the values are cut into pieces; design, section 3. Exponent field 255 has no significands to
/// add: its bucket counts infinities (low) and NaNs (high).
struct SquareSum {
  static constexpr std::size_t kExponents = 256;
  std::array<std::array<std::uint64_t, 2>, kExponents> bucket{};

  SquareSum& operator+=(const SquareSum& other);
  /// The square root, in a decided order: NaN if a value was NaN, else infinite if one was.
  double root() const;
};

/// Where tensors live and arithmetic happens. Pointers are device pointers; every call completes in
/// the order it was issued. All matrices are row-major and contiguous unless said otherwise.
/// Except for `ordered_sum`, only the rank's compute thread calls a device.
class Device {
 public:
  virtual ~Device() = default;

  /// For run.json: "cpu (oneDNN 2.6.3, avx512_core_bf16, 1 thread)".
  virtual std::string description() const = 0;

  // --- products and layers -------------------------------------------------------------------

  /// c is overwritten, never accumulated into (design, section 3). `bias` may be null.
  virtual void matmul(const Product& shape, const float* a, const float* b, const float* bias,
                      float* c) = 0;

  /// out[n] = sum over rows of in[rows, n], in row order.
  virtual void sum_rows(Index rows, Index n, const float* in, float* out) = 0;

  /// y = (x - mean) / sqrt(variance + epsilon) * gamma + beta for each of `rows` rows of `width`.
  virtual void layer_norm(Index rows, Index width, float epsilon, const float* x,
                          const float* gamma, const float* beta, float* y, float* mean,
                          float* variance) = 0;
  virtual void layer_norm_backward(Index rows, Index width, float epsilon, const float* x,
                                   const float* gamma, const float* mean, const float* variance,
                                   const float* dy, float* dx, float* dgamma, float* dbeta) = 0;

  /// scores[batch, length, length], in place: row i becomes softmax(factor * scores[i, 0..i]), and
  /// 0 behind the diagonal.
  virtual void causal_softmax(Index batch, Index length, float factor, float* scores) = 0;
  /// dscores (in place over dprobabilities) for the same factor.
  virtual void causal_softmax_backward(Index batch, Index length, float factor,
                                       const float* probabilities, float* dscores) = 0;

  /// The tanh approximation of GELU (Hendrycks, Gimpel, 2016).
  virtual void gelu(Index n, const float* x, float* y) = 0;
  virtual void gelu_backward(Index n, const float* x, const float* dy, float* dx) = 0;

  /// out[rows, length]: 0, 1, ..., length - 1 in every row.
  virtual void positions(Index rows, Index length, std::int32_t* out) = 0;
  /// out[i] = table[tokens[i]], rows of `width`.
  virtual void embedding(Index count, Index width, const std::int32_t* tokens, const float* table,
                         float* out) = 0;
  /// dtable[vocabulary, width] = 0, then dtable[tokens[i]] += dout[i] in the order of i.
  virtual void embedding_backward(Index count, Index width, Index vocabulary,
                                  const std::int32_t* tokens, const float* dout, float* dtable) = 0;

  /// logits[rows, classes] become log-probabilities in place; returns the sum over rows of
  /// -log p(target), added as doubles in row order.
  virtual double cross_entropy(Index rows, Index classes, const std::int32_t* targets,
                               float* logits) = 0;
  /// log-probabilities become dlogits in place: factor * (p - [class == target]).
  virtual void cross_entropy_backward(Index rows, Index classes, float factor,
                                      const std::int32_t* targets, float* logits) = 0;

  // --- moving and filling
  // ----------------------------------------------------------------------------

  /// Copies bytes from host memory.
  virtual void upload(void* out, const void* host, Index bytes) = 0;
  /// And back; returns when they are there.
  virtual void download(void* host, const void* in, Index bytes) = 0;
  virtual void fill(float* out, Index n, float value) = 0;
  virtual void copy(float* out, const float* in, Index n) = 0;

  // --- element-wise ----------------------------------------------------------------------------

  /// out += in.
  virtual void add(float* out, const float* in, Index n) = 0;

  /// out = (((parts[0] + parts[1]) + parts[2]) + ...) * factor. `out` may be one of the parts.
  /// Also called by the communication worker.
  virtual void ordered_sum(std::span<const float* const> parts, Index n, float factor,
                           float* out) = 0;

  /// Elements [first, first + n) of a random tensor with this deviation (base/philox.hpp).
  virtual void random_normal(float* out, Index first, Index n, std::uint64_t seed,
                             std::uint64_t tensor, float deviation) = 0;

  virtual void adam(const AdamUpdate& update, Index n, const float* gradient, float* master,
                    float* moment1, float* moment2) = 0;
  /// `momentum` is null when update.momentum is 0.
  virtual void sgd(const SgdUpdate& update, Index n, const float* gradient, float* master,
                   float* momentum) = 0;

  virtual SquareSum square_sum(const float* in, Index n) = 0;

  /// The sum modulo 2^64 of hash_element(parameter, first + i, bits of in[i]) (base/hash.hpp).
  virtual std::uint64_t hash(std::uint64_t parameter, Index first, const float* in, Index n) = 0;
};

}  // namespace zerolab
