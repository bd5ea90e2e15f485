#pragma once

#include <array>
#include <cstdint>
#include <memory_resource>
#include <span>
#include <string>

#include "stages/base/values.hpp"

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
  /// Whether every value was.
  bool finite() const { return bucket[kExponents - 1] == std::array<std::uint64_t, 2>{}; }
  /// The square root, in a decided order: NaN if a value was NaN, else infinite if one was.
  double root() const;
};

/// What was lost when results were rounded to 16 bits. Where the processor rounds them itself (its
/// own products of bf16) nobody counts.
struct RoundingLoss {
  Index rounded = 0;  // values other than zero that were stored with 16 bits
  Index flushed = 0;  // of them, those that became zero

  double share() const {
    return rounded == 0 ? 0 : static_cast<double>(flushed) / static_cast<double>(rounded);
  }
  RoundingLoss& operator+=(const RoundingLoss& other) {
    rounded += other.rounded;
    flushed += other.flushed;
    return *this;
  }
  RoundingLoss operator-(const RoundingLoss& earlier) const {
    return {rounded - earlier.rounded, flushed - earlier.flushed};
  }
};

/// Where tensors live and arithmetic happens. Pointers are device pointers; every call completes in
/// the order it was issued. All matrices are row-major and contiguous unless said otherwise.
/// `Values` may be fp32, bf16 or fp16: inside of a call everything is computed in fp32 (a product
/// of bf16 as the processor does it, where it does), and every element of the result is rounded
/// once. Except for `ordered_sum`, only the rank's compute thread calls a device.
class Device {
 public:
  virtual ~Device() = default;

  /// For run.json: "cpu (oneDNN 2.6.3, avx512_core_bf16, 1 thread)".
  virtual std::string description() const = 0;

  // --- products and layers -------------------------------------------------------------------

  /// c is overwritten, never accumulated into (design, section 3). `bias` may be null.
  virtual void matmul(const Product& shape, ConstValues a, ConstValues b, ConstValues bias,
                      Values c) = 0;

  /// out[n] = sum over rows of in[rows, n], in row order.
  virtual void sum_rows(Index rows, Index n, ConstValues in, Values out) = 0;

  /// y = (x - mean) / sqrt(variance + epsilon) * gamma + beta for each of `rows` rows of `width`.
  virtual void layer_norm(Index rows, Index width, float epsilon, ConstValues x, ConstValues gamma,
                          ConstValues beta, Values y, float* mean, float* variance) = 0;
  virtual void layer_norm_backward(Index rows, Index width, float epsilon, ConstValues x,
                                   ConstValues gamma, const float* mean, const float* variance,
                                   ConstValues dy, Values dx, Values dgamma, Values dbeta) = 0;

  /// scores[batch, length, length], in place: row i becomes softmax(factor * scores[i, 0..i]), and
  /// 0 behind the diagonal.
  virtual void causal_softmax(Index batch, Index length, float factor, Values scores) = 0;
  /// dscores (in place over dprobabilities) for the same factor.
  virtual void causal_softmax_backward(Index batch, Index length, float factor,
                                       ConstValues probabilities, Values dscores) = 0;

  /// The tanh approximation of GELU (Hendrycks, Gimpel, 2016).
  virtual void gelu(Index n, ConstValues x, Values y) = 0;
  virtual void gelu_backward(Index n, ConstValues x, ConstValues dy, Values dx) = 0;

  /// out[rows, length]: 0, 1, ..., length - 1 in every row.
  virtual void positions(Index rows, Index length, std::int32_t* out) = 0;
  /// out[i] = table[tokens[i]], rows of `width`.
  virtual void embedding(Index count, Index width, const std::int32_t* tokens, ConstValues table,
                         Values out) = 0;
  /// dtable[vocabulary, width] = 0, then dtable[tokens[i]] += dout[i] in the order of i.
  virtual void embedding_backward(Index count, Index width, Index vocabulary,
                                  const std::int32_t* tokens, ConstValues dout, Values dtable) = 0;

  /// Returns the sum over rows of -log p(target), added as doubles in row order; a row with a
  /// target below 0 adds nothing. logits[rows, classes] become what the backward call needs.
  virtual double cross_entropy(Index rows, Index classes, const std::int32_t* targets,
                               Values logits) = 0;
  /// In place what cross_entropy left becomes dlogits: factor * (p - [class == target]), and 0 in a
  /// row whose target is below 0.
  virtual void cross_entropy_backward(Index rows, Index classes, float factor,
                                      const std::int32_t* targets, Values logits) = 0;

  // --- moving and filling ------------------------------------------------------------------------

  /// Copies bytes from host memory.
  virtual void upload(void* out, const void* host, Index bytes) = 0;
  /// And back; returns when they are there.
  virtual void download(void* host, const void* in, Index bytes) = 0;
  virtual void fill(Values out, Index n, float value) = 0;
  /// Where the types differ each element is converted.
  virtual void copy(Values out, ConstValues in, Index n) = 0;

  // --- element-wise ----------------------------------------------------------------------------

  /// out += in.
  virtual void add(Values out, ConstValues in, Index n) = 0;

  /// values *= factor.
  virtual void scale(Values values, Index n, float factor) = 0;

  /// out = (((parts[0] + parts[1]) + parts[2]) + ...) * factor. `out` may be one of the parts.
  /// Also called by the communication worker.
  virtual void ordered_sum(std::span<const ConstValues> parts, Index n, float factor,
                           Values out) = 0;

  /// Elements [first, first + n) of a random tensor with this deviation (base/philox.hpp).
  virtual void random_normal(Values out, Index first, Index n, std::uint64_t seed,
                             std::uint64_t tensor, float deviation) = 0;

  virtual void adam(const AdamUpdate& update, Index n, ConstValues gradient, float* master,
                    float* moment1, float* moment2) = 0;
  /// `momentum` is null when update.momentum is 0.
  virtual void sgd(const SgdUpdate& update, Index n, ConstValues gradient, float* master,
                   float* momentum) = 0;

  /// After somebody has written the weights themselves: a master becomes the weight, unless it is
  /// what the weight was rounded from.
  virtual void follow(ConstValues weights, Index n, float* master) = 0;

  virtual SquareSum square_sum(ConstValues in, Index n) = 0;

  /// Whether none of them is infinite or NaN.
  virtual bool finite(ConstValues in, Index n) = 0;

  /// The sum modulo 2^64 of hash_element(parameter, first + i, bits of in[i] as fp32)
  /// (base/hash.hpp).
  virtual std::uint64_t hash(std::uint64_t parameter, Index first, ConstValues in, Index n) = 0;

  /// Of all calls of the compute thread so far; and of `ordered_sum`, which runs beside it.
  virtual RoundingLoss rounding_loss() const = 0;
  virtual RoundingLoss rounding_loss_of_sums() const = 0;
};

}  // namespace zerolab
