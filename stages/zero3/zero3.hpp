#pragma once

#include <vector>

#include "stages/engine/gradient_buckets.hpp"
#include "stages/engine/micro_step_gradients.hpp"
#include "stages/zero3/gather_memory.hpp"
#include "stages/zero3/module_order.hpp"

namespace zerolab {

/// Stage 3, P_os+g+p: a rank holds only its piece of every parameter, gradient and moment. A
/// parameter is whole from an all-gather before a module that reads it until nobody reads it soon
/// (README.md draws the layout). The coordinator decides when, `gathered_` does it.
class Zero3 : public Stage {
 public:
  explicit Zero3(Runtime& runtime);

  void set_up(Model& model) override;
  void fetch(const Visit& visit) override;
  void fetch_also(const Visit& visit, Parameter& parameter) override;
  void release(const Visit& visit) override;
  Values gradient_buffer(Parameter& parameter, MicroStep micro_step) override;
  void gradient_ready(Parameter& parameter, MicroStep micro_step) override;
  void finish_gradients() override;
  std::vector<OwnedSlice> owned() override;
  bool replicated() const override { return false; }
  void publish() override;
  void end_pass() override;
  void abandon_pass() override;
  void gather(const std::vector<Parameter*>& parameters) override;
  void take_over(const Parameter& parameter) override;
  void let_go(const std::vector<Parameter*>& parameters) override;
  FetchCounts fetch_counts() const override { return coordinator_.counts(); }

 private:
  Stop stop_of(const Visit& visit);
  void carry_out(const Decision& decision, const Module* module);
  void note(const OrderChange& change);
  void check_that_all_rest() const;
  std::vector<Run> runs_of(const Bucket& bucket) const;
  void keep_piece(const Bucket& bucket);

  Runtime& runtime_;
  ParameterSet* model_parameters_ = nullptr;
  Pieces layout_;
  Pieces trainable_;  // the same without the frozen ones, which are pieces of weights only
  PieceBuffer parameters_, gradients_;
  PieceOptimizer optimizer_;
  std::vector<bool> persistent_;
  Coordinator coordinator_;
  GatherMemory memory_;
  Gathered gathered_;
  ModuleNumbers modules_;
  HeldGradients held_;
  GradientBuckets buckets_;
};

}  // namespace zerolab
