#pragma once

#include <map>
#include <vector>

#include "stages/model/module.hpp"
#include "stages/model/parameter_state.hpp"
#include "tests/device/support.hpp"

namespace zerolab::test {

/// Runs a module by itself, without engine and stage: every parameter is whole from the start and
/// every gradient has a buffer of its own. Declare it before the module, whose tensors it holds.
class LayerHarness : private ModuleHooks {
 public:
  explicit LayerHarness(int rank = 0) : recorder_(rank) {}

  /// Gives the module its surroundings; its parameters stay where they are, NOT_AVAILABLE.
  void attach(Module& module) { module.attach(context_); }

  /// Gives every parameter memory and random values of this deviation, biases and gains too.
  void provide(ParameterSet& parameters, float deviation = 0.5F) {
    for (Parameter& parameter : parameters) {
      provide(parameter,
              random_floats(parameter.numel(), 100 + static_cast<std::uint64_t>(parameter.id()),
                            deviation));
    }
  }
  void provide(Parameter& parameter, const Floats& values) {
    Buffer& buffer = weights_[&parameter];
    buffer = ledger_.allocate(parameter.numel() * size_of(Dtype::fp32), Category::parameters,
                              parameter.name());
    std::copy(values.begin(), values.end(), buffer.floats());
    parameter.data = buffer.floats();
    ParameterState::move(parameter, Status::available, Cause::set_up, "", recorder_);
  }

  Tensor tensor(Shape shape, const Floats& values) {
    Tensor result(ledger_, std::move(shape), Dtype::fp32, Category::activations, "test");
    std::copy(values.begin(), values.end(), result.floats());
    result.set_needs_gradient(true);
    return result;
  }
  Tensor tensor(Shape shape, const std::vector<std::int32_t>& values) {
    Tensor result(ledger_, std::move(shape), Dtype::int32, Category::activations, "test");
    std::copy(values.begin(), values.end(), result.ints());
    return result;
  }

  /// What the engine does before a micro-step.
  void begin_micro_step(ParameterSet& parameters) {
    for (Parameter& parameter : parameters) parameter.begin_micro_step();
    context_.pass = VisitKind::forward;
  }
  void begin_backward() { context_.pass = VisitKind::backward; }

  Floats weight(const Parameter& parameter) const {
    const float* begin = parameter.data;
    return Floats(begin, begin + parameter.numel());
  }
  /// The gradient of the latest micro-step, and how often it was said to be ready.
  Floats gradient(const Parameter& parameter) const {
    const float* begin = gradients_.at(&parameter).floats();
    return Floats(begin, begin + parameter.numel());
  }
  int times_ready(const Parameter& parameter) const {
    const auto found = ready_.find(&parameter);
    return found == ready_.end() ? 0 : found->second;
  }

  Device& device() { return device_; }
  const Ledger& ledger() const { return ledger_; }

 private:
  void before(const Visit& /*visit*/) override {}
  void after(const Visit& /*visit*/) override {}
  void reads_also(const Visit& /*visit*/, Parameter& /*parameter*/) override {}
  Values gradient_buffer(Parameter& parameter) override {
    Buffer& buffer = gradients_[&parameter];
    buffer = ledger_.allocate(parameter.numel() * size_of(Dtype::fp32), Category::gradients,
                              parameter.name());
    return buffer.floats();
  }
  void gradient_ready(Parameter& parameter) override { ++ready_[&parameter]; }

  Recorder recorder_;
  Ledger ledger_{"device", recorder_};
  CpuDevice device_{ledger_};
  ModelContext context_{
      .device = device_, .ledger = ledger_, .recorder = recorder_, .hooks = *this};
  std::map<const Parameter*, Buffer> weights_, gradients_;
  std::map<const Parameter*, int> ready_;
};

inline Floats floats_of(const Tensor& tensor) {
  return Floats(tensor.floats(), tensor.floats() + tensor.numel());
}

}  // namespace zerolab::test
