#pragma once

#include <map>
#include <vector>

#include "stages/engine/gradient_buckets.hpp"
#include "stages/engine/states.hpp"

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
  float* gradient_buffer(Parameter& parameter, MicroStep micro_step) override;
  void gradient_ready(Parameter& parameter, MicroStep micro_step) override;
  void finish_gradients() override;
  std::vector<OwnedSlice> owned() override;
  bool replicated() const override { return false; }
  void publish() override;
  void end_pass() override;

 private:
  Pending reduce(const Bucket& bucket, std::string owner);

  Runtime& runtime_;
  ParameterSet* model_parameters_ = nullptr;
  FlatLayout layout_;
  FlatBuffer parameters_, gradients_;
  std::vector<FlatBuffer> moments_;
  FrozenParameters frozen_;
  std::map<Index, Buffer> held_;  // gradients of later micro-steps, until they are added
  GradientBuckets buckets_;
};

}  // namespace zerolab
