#pragma once

#include <map>
#include <vector>

#include "stages/engine/gradient_buckets.hpp"
#include "stages/engine/states.hpp"
#include "stages/zero3/pieces.hpp"

namespace zerolab {

/// Stage 3, P_os+g+p: a rank holds only its piece of every parameter, gradient and moment. A
/// parameter is whole from the all-gather before a module that reads it until that module has run
/// (README.md draws the layout).
class Zero3 : public Stage {
 public:
  explicit Zero3(Runtime& runtime);

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
  void keep_piece(const Bucket& bucket);

  Runtime& runtime_;
  ParameterSet* model_parameters_ = nullptr;
  Pieces layout_;
  PieceBuffer parameters_, gradients_;
  std::vector<PieceBuffer> moments_;
  std::map<Index, Buffer> gathered_;  // whole parameters
  std::map<Index, Buffer> held_;      // whole gradients that are not finished
  GradientBuckets buckets_;
};

}  // namespace zerolab
