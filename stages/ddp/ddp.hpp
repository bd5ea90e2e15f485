#pragma once

#include <vector>

#include "stages/engine/gradient_buckets.hpp"
#include "stages/engine/micro_step_gradients.hpp"

namespace zerolab {

/// Stage 0, plain data parallel: every rank holds all model states whole; gradients are all-reduced
/// at the last micro-step (README.md draws the layout).
class Ddp : public Stage {
 public:
  explicit Ddp(Runtime& runtime);

  void set_up(Model& model) override;
  void fetch(const Visit& visit) override;
  void release(const Visit& visit) override;
  Values gradient_buffer(Parameter& parameter, MicroStep micro_step) override;
  void gradient_ready(Parameter& parameter, MicroStep micro_step) override;
  void finish_gradients() override;
  std::vector<OwnedSlice> owned() override;
  bool replicated() const override { return true; }
  void publish() override;
  void end_pass() override;

 private:
  std::vector<Run> runs_of(const Bucket& bucket) const;
  void keep(const Bucket& bucket);

  Runtime& runtime_;
  ParameterSet* model_parameters_ = nullptr;
  FlatLayout layout_;
  FlatBuffer parameters_, gradients_;
  FlatOptimizer optimizer_;
  FrozenParameters frozen_;
  LocalSums sums_;
  GradientBuckets buckets_;
};

}  // namespace zerolab
