#pragma once

#include <memory>

#include "stages/device/device.hpp"
#include "stages/memory/ledger.hpp"

namespace zerolab {

class Primitives;

/// The device that every machine has. Products, norms, softmax and GELU are oneDNN's; what is one
/// loop over memory is written here. The bits of a result depend on the shape, the number of
/// threads, oneDNN's version and the instruction set, but not on where the tensors lie: a weight is
/// a slice of a flat buffer and may be aligned to 4 bytes only.
///
/// One device per rank. oneDNN's scratchpads are taken from `ledger` (Category::workspace) for the
/// duration of a call, so products, norms, softmax, GELU and cross entropy throw OutOfMemory.
class CpuDevice : public Device {
 public:
  /// `ledger` must outlive the device. `threads` is how many oneDNN uses.
  explicit CpuDevice(Ledger& ledger, int threads = 1);
  ~CpuDevice() override;

  std::string description() const override;

  void matmul(const Product& shape, const float* a, const float* b, const float* bias,
              float* c) override;
  void sum_rows(Index rows, Index n, const float* in, float* out) override;

  void layer_norm(Index rows, Index width, float epsilon, const float* x, const float* gamma,
                  const float* beta, float* y, float* mean, float* variance) override;
  void layer_norm_backward(Index rows, Index width, float epsilon, const float* x,
                           const float* gamma, const float* mean, const float* variance,
                           const float* dy, float* dx, float* dgamma, float* dbeta) override;

  void causal_softmax(Index batch, Index length, float factor, float* scores) override;
  void causal_softmax_backward(Index batch, Index length, float factor, const float* probabilities,
                               float* dscores) override;

  void gelu(Index n, const float* x, float* y) override;
  void gelu_backward(Index n, const float* x, const float* dy, float* dx) override;

  void positions(Index rows, Index length, std::int32_t* out) override;
  void embedding(Index count, Index width, const std::int32_t* tokens, const float* table,
                 float* out) override;
  void embedding_backward(Index count, Index width, Index vocabulary, const std::int32_t* tokens,
                          const float* dout, float* dtable) override;

  double cross_entropy(Index rows, Index classes, const std::int32_t* targets,
                       float* logits) override;
  void cross_entropy_backward(Index rows, Index classes, float factor, const std::int32_t* targets,
                              float* logits) override;

  void upload(void* out, const void* host, Index bytes) override;
  void download(void* host, const void* in, Index bytes) override;
  void fill(float* out, Index n, float value) override;
  void copy(float* out, const float* in, Index n) override;
  void add(float* out, const float* in, Index n) override;
  void ordered_sum(std::span<const float* const> parts, Index n, float factor, float* out) override;
  void random_normal(float* out, Index first, Index n, std::uint64_t seed, std::uint64_t tensor,
                     float deviation) override;

  void adam(const AdamUpdate& update, Index n, const float* gradient, float* master, float* moment1,
            float* moment2) override;
  void sgd(const SgdUpdate& update, Index n, const float* gradient, float* master,
           float* momentum) override;

  SquareSum square_sum(const float* in, Index n) override;
  std::uint64_t hash(std::uint64_t parameter, Index first, const float* in, Index n) override;

 private:
  std::unique_ptr<Primitives> primitives_;
};

}  // namespace zerolab
