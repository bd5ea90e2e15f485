#pragma once

#include <memory>
#include <string>
#include <utility>

#include "stages/engine/training.hpp"

namespace zerolab {

/// A device that is another one; what derives from it changes what it computes.
class DeviceWrapper : public Device {
 public:
  explicit DeviceWrapper(std::unique_ptr<Device> inner) : inner_(std::move(inner)) {}

  std::string description() const override { return inner_->description(); }
  void matmul(const Product& shape, ConstValues a, ConstValues b, ConstValues bias,
              Values c) override {
    inner_->matmul(shape, a, b, bias, c);
  }
  void sum_rows(Index rows, Index n, ConstValues in, Values out) override {
    inner_->sum_rows(rows, n, in, out);
  }
  void layer_norm(Index rows, Index width, float epsilon, ConstValues x, ConstValues gamma,
                  ConstValues beta, Values y, float* mean, float* variance) override {
    inner_->layer_norm(rows, width, epsilon, x, gamma, beta, y, mean, variance);
  }
  void layer_norm_backward(Index rows, Index width, float epsilon, ConstValues x, ConstValues gamma,
                           const float* mean, const float* variance, ConstValues dy, Values dx,
                           Values dgamma, Values dbeta) override {
    inner_->layer_norm_backward(rows, width, epsilon, x, gamma, mean, variance, dy, dx, dgamma,
                                dbeta);
  }
  void causal_softmax(Index batch, Index length, float factor, Values scores) override {
    inner_->causal_softmax(batch, length, factor, scores);
  }
  void causal_softmax_backward(Index batch, Index length, float factor, ConstValues probabilities,
                               Values dscores) override {
    inner_->causal_softmax_backward(batch, length, factor, probabilities, dscores);
  }
  void gelu(Index n, ConstValues x, Values y) override { inner_->gelu(n, x, y); }
  void gelu_backward(Index n, ConstValues x, ConstValues dy, Values dx) override {
    inner_->gelu_backward(n, x, dy, dx);
  }
  void positions(Index rows, Index length, std::int32_t* out) override {
    inner_->positions(rows, length, out);
  }
  void embedding(Index count, Index width, const std::int32_t* tokens, ConstValues table,
                 Values out) override {
    inner_->embedding(count, width, tokens, table, out);
  }
  void embedding_backward(Index count, Index width, Index vocabulary, const std::int32_t* tokens,
                          ConstValues dout, Values dtable) override {
    inner_->embedding_backward(count, width, vocabulary, tokens, dout, dtable);
  }
  double cross_entropy(Index rows, Index classes, const std::int32_t* targets,
                       Values logits) override {
    return inner_->cross_entropy(rows, classes, targets, logits);
  }
  void cross_entropy_backward(Index rows, Index classes, float factor, const std::int32_t* targets,
                              Values logits) override {
    inner_->cross_entropy_backward(rows, classes, factor, targets, logits);
  }
  void upload(void* out, const void* host, Index bytes) override {
    inner_->upload(out, host, bytes);
  }
  void download(void* host, const void* in, Index bytes) override {
    inner_->download(host, in, bytes);
  }
  void fill(Values out, Index n, float value) override { inner_->fill(out, n, value); }
  void copy(Values out, ConstValues in, Index n) override { inner_->copy(out, in, n); }
  void add(Values out, ConstValues in, Index n) override { inner_->add(out, in, n); }
  void scale(Values values, Index n, float factor) override { inner_->scale(values, n, factor); }
  void ordered_sum(std::span<const ConstValues> parts, Index n, float factor, Values out) override {
    inner_->ordered_sum(parts, n, factor, out);
  }
  void random_normal(Values out, Index first, Index n, std::uint64_t seed, std::uint64_t tensor,
                     float deviation) override {
    inner_->random_normal(out, first, n, seed, tensor, deviation);
  }
  void adam(const AdamUpdate& update, Index n, ConstValues gradient, float* master, float* moment1,
            float* moment2) override {
    inner_->adam(update, n, gradient, master, moment1, moment2);
  }
  void sgd(const SgdUpdate& update, Index n, ConstValues gradient, float* master,
           float* momentum) override {
    inner_->sgd(update, n, gradient, master, momentum);
  }
  void follow(ConstValues weights, Index n, float* master) override {
    inner_->follow(weights, n, master);
  }
  SquareSum square_sum(ConstValues in, Index n) override { return inner_->square_sum(in, n); }
  bool finite(ConstValues in, Index n) override { return inner_->finite(in, n); }
  std::uint64_t hash(std::uint64_t parameter, Index first, ConstValues in, Index n) override {
    return inner_->hash(parameter, first, in, n);
  }
  RoundingLoss rounding_loss() const override { return inner_->rounding_loss(); }
  RoundingLoss rounding_loss_of_sums() const override { return inner_->rounding_loss_of_sums(); }

 protected:
  Device& inner() { return *inner_; }

 private:
  std::unique_ptr<Device> inner_;
};

/// From now on the training's device is Wrapper(its device, arguments...).
template <typename Wrapper, typename... Arguments>
void wrap_device(Training& training, Arguments... arguments) {
  training.device = [make = training.device, arguments...](Ledger& ledger, int threads) {
    return std::make_unique<Wrapper>(make(ledger, threads), arguments...);
  };
}

}  // namespace zerolab
