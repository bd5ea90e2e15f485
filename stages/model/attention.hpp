#pragma once

#include <string>
#include <vector>

#include "stages/model/layers.hpp"

namespace zerolab {

/// Multi-head causal self-attention (Vaswani et al., 2017) as GPT-2 has it: one product for
/// queries, keys and values, and a projection. [sequences * length, width] -> the same.
class CausalSelfAttention : public Module {
 public:
  /// `length` is the number of rows of one sequence in the current batch; it is read at every run.
  CausalSelfAttention(ParameterSet& parameters, std::string name, Index width, Index heads,
                      Initial qkv, Initial projection, const Index& length);

 protected:
  Tensor do_forward(const Tensor& input) override;
  Tensor do_backward(const Tensor& output_gradient) override;

 private:
  struct Kept {
    Tensor qkv, probabilities;
    Index length;
  };

  Index width_, heads_;
  const Index& length_;
  Linear qkv_;
  Linear projection_;
  std::vector<Kept> kept_;
};

}  // namespace zerolab
