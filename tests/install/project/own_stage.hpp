#pragma once

#include <string>
#include <vector>

#include "stages/engine/gradient_buckets.hpp"
#include "stages/engine/micro_step_gradients.hpp"

namespace own {

/// A parameter server (Li et al., OSDI 2014) written as a stage: rank 0 keeps the gradients and the
/// optimizer states and makes the update, the others only compute. It is stage 2 with another
/// answer to "who owns what", in the flat layout of partition/layout.hpp:
///
///             rank 0            rank 1            rank 2
/// parameters  |==============|  |==============|  |==============|
/// gradients   |==============|
/// moments     |==============|
class ParameterServer : public zerolab::Stage {
 public:
  explicit ParameterServer(zerolab::Runtime& runtime);

  void set_up(zerolab::Model& model) override;
  void fetch(const zerolab::Visit& visit) override;
  void release(const zerolab::Visit& visit) override;
  zerolab::Values gradient_buffer(zerolab::Parameter& parameter,
                                  zerolab::MicroStep micro_step) override;
  void gradient_ready(zerolab::Parameter& parameter, zerolab::MicroStep micro_step) override;
  void finish_gradients() override;
  std::vector<zerolab::OwnedSlice> owned() override;
  bool replicated() const override { return false; }  // each element has one owner
  void publish() override;
  void end_pass() override;

 private:
  bool is_server() const { return runtime_.rank() == 0; }
  zerolab::Range owned_range() const;
  std::vector<zerolab::Run> runs_of(const zerolab::Bucket& bucket) const;
  void keep_mean(const zerolab::Bucket& bucket);

  zerolab::Runtime& runtime_;
  zerolab::ParameterSet* model_parameters_ = nullptr;
  zerolab::FlatLayout layout_;
  zerolab::FlatBuffer parameters_, gradients_;
  zerolab::FlatOptimizer optimizer_;
  zerolab::FrozenParameters frozen_;
  zerolab::HeldGradients held_;  // whole gradients that are not finished
  zerolab::GradientBuckets buckets_;
};

}  // namespace own
