#pragma once

#include <stdexcept>

#include "stages/device/device.hpp"

namespace zerolab {

/// A device for tests of communication: it can add what arrives, and nothing else.
class SumDevice final : public Device {
 public:
  std::string description() const override { return "sums only"; }

  void ordered_sum(std::span<const ConstValues> parts, Index n, float factor, Values out) override {
    float* result = out.floats();
    for (Index i = 0; i < n; ++i) {
      float sum = parts[0].floats()[i];
      for (const ConstValues part : parts.subspan(1)) sum += part.floats()[i];
      result[i] = sum * factor;
    }
  }

  void matmul(const Product&, ConstValues, ConstValues, ConstValues, Values) override { no(); }
  void sum_rows(Index, Index, ConstValues, Values) override { no(); }
  void layer_norm(Index, Index, float, ConstValues, ConstValues, ConstValues, Values, float*,
                  float*) override {
    no();
  }
  void layer_norm_backward(Index, Index, float, ConstValues, ConstValues, const float*,
                           const float*, ConstValues, Values, Values, Values) override {
    no();
  }
  void causal_softmax(Index, Index, float, Values) override { no(); }
  void causal_softmax_backward(Index, Index, float, ConstValues, Values) override { no(); }
  void gelu(Index, ConstValues, Values) override { no(); }
  void gelu_backward(Index, ConstValues, ConstValues, Values) override { no(); }
  void positions(Index, Index, std::int32_t*) override { no(); }
  void embedding(Index, Index, const std::int32_t*, ConstValues, Values) override { no(); }
  void embedding_backward(Index, Index, Index, const std::int32_t*, ConstValues, Values) override {
    no();
  }
  double cross_entropy(Index, Index, const std::int32_t*, Values) override { no(); }
  void cross_entropy_backward(Index, Index, float, const std::int32_t*, Values) override { no(); }
  void upload(void*, const void*, Index) override { no(); }
  void download(void*, const void*, Index) override { no(); }
  void fill(Values, Index, float) override { no(); }
  void copy(Values, ConstValues, Index) override { no(); }
  void add(Values, ConstValues, Index) override { no(); }
  void scale(Values, Index, float) override { no(); }
  void random_normal(Values, Index, Index, std::uint64_t, std::uint64_t, float) override { no(); }
  void adam(const AdamUpdate&, Index, ConstValues, float*, float*, float*) override { no(); }
  void sgd(const SgdUpdate&, Index, ConstValues, float*, float*) override { no(); }
  void follow(ConstValues, Index, float*) override { no(); }
  SquareSum square_sum(ConstValues, Index) override { no(); }
  bool finite(ConstValues, Index) override { no(); }
  std::uint64_t hash(std::uint64_t, Index, ConstValues, Index) override { no(); }
  RoundingLoss rounding_loss() const override { no(); }
  RoundingLoss rounding_loss_of_sums() const override { no(); }

 private:
  [[noreturn]] static void no() { throw std::logic_error("SumDevice only sums"); }
};

}  // namespace zerolab
