#pragma once

#include <stdexcept>

#include "stages/device/device.hpp"

namespace zerolab {

/// A device for tests of communication: it can add what arrives, and nothing else.
class SumDevice final : public Device {
 public:
  std::string description() const override { return "sums only"; }

  void ordered_sum(std::span<const float* const> parts, Index n, float factor,
                   float* out) override {
    for (Index i = 0; i < n; ++i) {
      float sum = parts[0][i];
      for (const float* part : parts.subspan(1)) sum += part[i];
      out[i] = sum * factor;
    }
  }

  void matmul(const Product&, const float*, const float*, const float*, float*) override { no(); }
  void sum_rows(Index, Index, const float*, float*) override { no(); }
  void layer_norm(Index, Index, float, const float*, const float*, const float*, float*, float*,
                  float*) override {
    no();
  }
  void layer_norm_backward(Index, Index, float, const float*, const float*, const float*,
                           const float*, const float*, float*, float*, float*) override {
    no();
  }
  void causal_softmax(Index, Index, float, float*) override { no(); }
  void causal_softmax_backward(Index, Index, float, const float*, float*) override { no(); }
  void positions(Index, Index, std::int32_t*) override { no(); }
  void upload(void*, const void*, Index) override { no(); }
  void download(void*, const void*, Index) override { no(); }
  void gelu(Index, const float*, float*) override { no(); }
  void gelu_backward(Index, const float*, const float*, float*) override { no(); }
  void embedding(Index, Index, const std::int32_t*, const float*, float*) override { no(); }
  void embedding_backward(Index, Index, Index, const std::int32_t*, const float*, float*) override {
    no();
  }
  double cross_entropy(Index, Index, const std::int32_t*, float*) override { no(); }
  void cross_entropy_backward(Index, Index, float, const std::int32_t*, float*) override { no(); }
  void fill(float*, Index, float) override { no(); }
  void copy(float*, const float*, Index) override { no(); }
  void add(float*, const float*, Index) override { no(); }
  void random_normal(float*, Index, Index, std::uint64_t, std::uint64_t, float) override { no(); }
  void adam(const AdamUpdate&, Index, const float*, float*, float*, float*) override { no(); }
  void sgd(const SgdUpdate&, Index, const float*, float*, float*) override { no(); }
  SquareSum square_sum(const float*, Index) override { no(); }
  std::uint64_t hash(std::uint64_t, Index, const float*, Index) override { no(); }

 private:
  [[noreturn]] static void no() { throw std::logic_error("SumDevice only sums"); }
};

}  // namespace zerolab
