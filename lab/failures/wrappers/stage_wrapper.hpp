#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "stages/engine/training.hpp"

namespace zerolab {

/// A stage that is another one; what derives from it overrides what it wants to see or to change.
class StageWrapper : public Stage {
 public:
  StageWrapper(std::unique_ptr<Stage> inner, Runtime& runtime)
      : inner_(std::move(inner)), runtime_(runtime) {}

  void set_up(Model& model) override { inner_->set_up(model); }
  void fetch(const Visit& visit) override { inner_->fetch(visit); }
  void fetch_also(const Visit& visit, Parameter& parameter) override {
    inner_->fetch_also(visit, parameter);
  }
  void release(const Visit& visit) override { inner_->release(visit); }
  Values gradient_buffer(Parameter& parameter, MicroStep micro_step) override {
    return inner_->gradient_buffer(parameter, micro_step);
  }
  void gradient_ready(Parameter& parameter, MicroStep micro_step) override {
    inner_->gradient_ready(parameter, micro_step);
  }
  void finish_gradients() override { inner_->finish_gradients(); }
  std::vector<OwnedSlice> owned() override { return inner_->owned(); }
  bool replicated() const override { return inner_->replicated(); }
  void publish() override { inner_->publish(); }
  void end_pass() override { inner_->end_pass(); }
  void abandon_pass() override { inner_->abandon_pass(); }
  void gather(const std::vector<Parameter*>& parameters) override { inner_->gather(parameters); }
  void take_over(const Parameter& parameter) override { inner_->take_over(parameter); }
  void let_go(const std::vector<Parameter*>& parameters) override { inner_->let_go(parameters); }
  FetchCounts fetch_counts() const override { return inner_->fetch_counts(); }

 protected:
  Runtime& runtime() { return runtime_; }

 private:
  std::unique_ptr<Stage> inner_;
  Runtime& runtime_;
};

/// From now on the training's stage is Wrapper(its stage, runtime, arguments...) on every rank;
/// std::ref for what is not to be copied.
template <typename Wrapper, typename... Arguments>
void wrap_stage(Training& training, Arguments... arguments) {
  training.stage = [make = training.stage,
                    arguments...](Runtime& runtime) -> std::unique_ptr<Stage> {
    return std::make_unique<Wrapper>(make(runtime), runtime, arguments...);
  };
}

/// The same training, with its stage wrapped.
template <typename Wrapper, typename... Arguments>
Training with_stage(Training training, Arguments... arguments) {
  wrap_stage<Wrapper>(training, arguments...);
  return training;
}

}  // namespace zerolab
