#pragma once

#include <atomic>
#include <memory>

#include "stages/device/device.hpp"
#include "stages/memory/ledger.hpp"

namespace zerolab {

class Primitives;

/// The device that every machine has. Products, norms, softmax and GELU are oneDNN's; what is one
/// loop over memory is written here. The bits of a result depend on the shape, the number of
/// threads, oneDNN's version and the instruction set, but not on where the tensors lie: a weight is
/// a slice of a flat buffer and may be aligned to its element size only.
///
/// Products of bf16 are oneDNN's own where the processor multiplies bf16 (AVX512-BF16, AMX).
/// Everything else with 16 bits is widened to fp32, computed, and rounded, block by block.
///
/// One device per rank. oneDNN's scratchpads and what is widened are taken from `ledger`
/// (Category::workspace) for the duration of a call, so products, norms, softmax, GELU and cross
/// entropy throw OutOfMemory.
class CpuDevice : public Device {
 public:
  /// `ledger` must outlive the device. `threads` is how many oneDNN uses.
  explicit CpuDevice(Ledger& ledger, int threads = 1);
  ~CpuDevice() override;

  std::string description() const override;

  void matmul(const Product& shape, ConstValues a, ConstValues b, ConstValues bias,
              Values c) override;
  void sum_rows(Index rows, Index n, ConstValues in, Values out) override;
  void layer_norm(Index rows, Index width, float epsilon, ConstValues x, ConstValues gamma,
                  ConstValues beta, Values y, float* mean, float* variance) override;
  void layer_norm_backward(Index rows, Index width, float epsilon, ConstValues x, ConstValues gamma,
                           const float* mean, const float* variance, ConstValues dy, Values dx,
                           Values dgamma, Values dbeta) override;
  void causal_softmax(Index batch, Index length, float factor, Values scores) override;
  void causal_softmax_backward(Index batch, Index length, float factor, ConstValues probabilities,
                               Values dscores) override;
  void gelu(Index n, ConstValues x, Values y) override;
  void gelu_backward(Index n, ConstValues x, ConstValues dy, Values dx) override;
  void positions(Index rows, Index length, std::int32_t* out) override;
  void embedding(Index count, Index width, const std::int32_t* tokens, ConstValues table,
                 Values out) override;
  void embedding_backward(Index count, Index width, Index vocabulary, const std::int32_t* tokens,
                          ConstValues dout, Values dtable) override;
  double cross_entropy(Index rows, Index classes, const std::int32_t* targets,
                       Values logits) override;
  void cross_entropy_backward(Index rows, Index classes, float factor, const std::int32_t* targets,
                              Values logits) override;
  void upload(void* out, const void* host, Index bytes) override;
  void download(void* host, const void* in, Index bytes) override;
  void fill(Values out, Index n, float value) override;
  void copy(Values out, ConstValues in, Index n) override;
  void add(Values out, ConstValues in, Index n) override;
  void scale(Values values, Index n, float factor) override;
  void ordered_sum(std::span<const ConstValues> parts, Index n, float factor, Values out) override;
  void random_normal(Values out, Index first, Index n, std::uint64_t seed, std::uint64_t tensor,
                     float deviation) override;
  void adam(const AdamUpdate& update, Index n, ConstValues gradient, float* master, float* moment1,
            float* moment2) override;
  void sgd(const SgdUpdate& update, Index n, ConstValues gradient, float* master,
           float* momentum) override;
  void follow(ConstValues weights, Index n, float* master) override;
  SquareSum square_sum(ConstValues in, Index n) override;
  bool finite(ConstValues in, Index n) override;
  std::uint64_t hash(std::uint64_t parameter, Index first, ConstValues in, Index n) override;
  RoundingLoss rounding_loss() const override;
  RoundingLoss rounding_loss_of_sums() const override;

 private:
  class Widened;
  void onednn_product(const Product& product, ConstValues a, ConstValues b, ConstValues bias,
                      Values c);
  void widened_product(const Product& product, ConstValues a, ConstValues b, ConstValues bias,
                       Values c);
  Buffer workspace(Index elements);
  void store(const float* in, Index n, Values out);

  Ledger& ledger_;
  std::unique_ptr<Primitives> primitives_;
  RoundingLoss rounding_loss_;
  std::atomic<Index> rounded_sums_ = 0, flushed_sums_ = 0;  // by the communication worker
};

}  // namespace zerolab
