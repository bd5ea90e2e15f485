#pragma once

#include <vector>

#include "stages/engine/gradient_buckets.hpp"
#include "stages/engine/micro_step_gradients.hpp"

namespace zerolab {

/// Stage 1, P_os: as stage 0, but a rank holds only its slice of the optimizer state, so it needs
/// only its slice of the mean gradient, and publishes its slice of the updated parameters
/// (README.md draws the layout).
class Zero1 : public Stage {
 public:
  explicit Zero1(Runtime& runtime);

  void set_up(Model& model) override;
  void fetch(const Visit& visit) override;
  void release(const Visit& visit) override;
  Values gradient_buffer(Parameter& parameter, MicroStep micro_step) override;
  void gradient_ready(Parameter& parameter, MicroStep micro_step) override;
  void finish_gradients() override;
  std::vector<OwnedSlice> owned() override;
  bool replicated() const override { return false; }
  void publish() override;
  void end_pass() override;

 private:
  std::vector<Run> runs_of(const Bucket& bucket) const;
  void keep_slice(const Bucket& bucket);

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
