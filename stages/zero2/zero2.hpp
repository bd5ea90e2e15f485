#pragma once

#include <vector>

#include "stages/engine/gradient_buckets.hpp"
#include "stages/engine/micro_step_gradients.hpp"

namespace zerolab {

/// Stage 2, P_os+g: as stage 1, but a rank keeps only its slice of the gradients. A whole gradient
/// lives from its first contribution until its bucket is reduced, so every micro-step reduces
/// (README.md draws the layout).
class Zero2 : public Stage {
 public:
  explicit Zero2(Runtime& runtime);

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
  HeldGradients held_;
  GradientBuckets buckets_;
};

}  // namespace zerolab
