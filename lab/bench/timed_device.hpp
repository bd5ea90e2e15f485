#pragma once

#include <array>
#include <chrono>
#include <string_view>

#include "stages/device/cpu/cpu_device.hpp"

namespace zerolab::bench {

/// What the calls of a device are for, as a profile shows it.
enum class Part {
  products,
  attention_products,
  softmax,
  layer_norm,
  gelu,
  cross_entropy,
  embedding,
  moving,  // copies, fills, and sums of rows and tensors
  update,
  norm,
  hash,
};
inline constexpr std::size_t kParts = 11;
std::string_view name_of(Part part);

/// Seconds by part.
using PartSeconds = std::array<double, kParts>;

/// A CpuDevice that counts how long the compute thread is in its calls. `ordered_sum` is not
/// counted: it belongs to the collectives, and their worker calls it too.
class TimedDevice final : public CpuDevice {
 public:
  using CpuDevice::CpuDevice;

  const PartSeconds& seconds() const { return seconds_; }

  void matmul(const Product& shape, ConstValues a, ConstValues b, ConstValues bias,
              Values c) override {
    const Timer timer(*this,
                      shape.outer * shape.inner == 1 ? Part::products : Part::attention_products);
    CpuDevice::matmul(shape, a, b, bias, c);
  }
  void sum_rows(Index rows, Index n, ConstValues in, Values out) override {
    const Timer timer(*this, Part::moving);
    CpuDevice::sum_rows(rows, n, in, out);
  }
  void layer_norm(Index rows, Index width, float epsilon, ConstValues x, ConstValues gamma,
                  ConstValues beta, Values y, float* mean, float* variance) override {
    const Timer timer(*this, Part::layer_norm);
    CpuDevice::layer_norm(rows, width, epsilon, x, gamma, beta, y, mean, variance);
  }
  void layer_norm_backward(Index rows, Index width, float epsilon, ConstValues x, ConstValues gamma,
                           const float* mean, const float* variance, ConstValues dy, Values dx,
                           Values dgamma, Values dbeta) override {
    const Timer timer(*this, Part::layer_norm);
    CpuDevice::layer_norm_backward(rows, width, epsilon, x, gamma, mean, variance, dy, dx, dgamma,
                                   dbeta);
  }
  void causal_softmax(Index batch, Index length, float factor, Values scores) override {
    const Timer timer(*this, Part::softmax);
    CpuDevice::causal_softmax(batch, length, factor, scores);
  }
  void causal_softmax_backward(Index batch, Index length, float factor, ConstValues probabilities,
                               Values dscores) override {
    const Timer timer(*this, Part::softmax);
    CpuDevice::causal_softmax_backward(batch, length, factor, probabilities, dscores);
  }
  void gelu(Index n, ConstValues x, Values y) override {
    const Timer timer(*this, Part::gelu);
    CpuDevice::gelu(n, x, y);
  }
  void gelu_backward(Index n, ConstValues x, ConstValues dy, Values dx) override {
    const Timer timer(*this, Part::gelu);
    CpuDevice::gelu_backward(n, x, dy, dx);
  }
  void embedding(Index count, Index width, const std::int32_t* tokens, ConstValues table,
                 Values out) override {
    const Timer timer(*this, Part::embedding);
    CpuDevice::embedding(count, width, tokens, table, out);
  }
  void embedding_backward(Index count, Index width, Index vocabulary, const std::int32_t* tokens,
                          ConstValues dout, Values dtable) override {
    const Timer timer(*this, Part::embedding);
    CpuDevice::embedding_backward(count, width, vocabulary, tokens, dout, dtable);
  }
  double cross_entropy(Index rows, Index classes, const std::int32_t* targets,
                       Values logits) override {
    const Timer timer(*this, Part::cross_entropy);
    return CpuDevice::cross_entropy(rows, classes, targets, logits);
  }
  void cross_entropy_backward(Index rows, Index classes, float factor, const std::int32_t* targets,
                              Values logits) override {
    const Timer timer(*this, Part::cross_entropy);
    CpuDevice::cross_entropy_backward(rows, classes, factor, targets, logits);
  }
  void fill(Values out, Index n, float value) override {
    const Timer timer(*this, Part::moving);
    CpuDevice::fill(out, n, value);
  }
  void copy(Values out, ConstValues in, Index n) override {
    const Timer timer(*this, Part::moving);
    CpuDevice::copy(out, in, n);
  }
  void add(Values out, ConstValues in, Index n) override {
    const Timer timer(*this, Part::moving);
    CpuDevice::add(out, in, n);
  }
  void adam(const AdamUpdate& update, Index n, ConstValues gradient, float* master, float* moment1,
            float* moment2) override {
    const Timer timer(*this, Part::update);
    CpuDevice::adam(update, n, gradient, master, moment1, moment2);
  }
  SquareSum square_sum(ConstValues in, Index n) override {
    const Timer timer(*this, Part::norm);
    return CpuDevice::square_sum(in, n);
  }
  std::uint64_t hash(std::uint64_t parameter, Index first, ConstValues in, Index n) override {
    const Timer timer(*this, Part::hash);
    return CpuDevice::hash(parameter, first, in, n);
  }

 private:
  using Clock = std::chrono::steady_clock;

  // Calls call each other (sum_rows adds): what the inner ones count is not the outer one's again.
  class Timer {
   public:
    Timer(TimedDevice& device, Part part)
        : device_(device), part_(part), outside_(device.counted_), start_(Clock::now()) {}
    ~Timer() {
      const double whole = std::chrono::duration<double>(Clock::now() - start_).count();
      device_.seconds_[static_cast<std::size_t>(part_)] += whole - (device_.counted_ - outside_);
      device_.counted_ = outside_ + whole;
    }
    Timer(const Timer&) = delete;
    Timer& operator=(const Timer&) = delete;

   private:
    TimedDevice& device_;
    Part part_;
    double outside_;
    Clock::time_point start_;
  };

  PartSeconds seconds_{};
  double counted_ = 0;
};

}  // namespace zerolab::bench
