#pragma once

#include <memory>
#include <string>
#include <vector>

#include "stages/model/attention.hpp"
#include "stages/model/model.hpp"

namespace zerolab {

/// One pre-norm block: x + attention(norm(x)), then x + mlp(norm(x)).
class TransformerBlock : public Module {
 public:
  TransformerBlock(ParameterSet& parameters, std::string name, Index width, Index heads,
                   Initial inner, Initial into_residual, const Index& length);

 protected:
  Tensor do_forward(const Tensor& input) override;
  Tensor do_backward(const Tensor& output_gradient) override;

 private:
  LayerNorm norm1_;
  CausalSelfAttention attention_;
  LayerNorm norm2_;
  Linear up_;
  Gelu gelu_;
  Linear down_;
};

/// GPT-2 (Radford et al., 2019): learned positions, pre-norm, tanh GELU, tied head, no dropout.
/// int32 [sequences, length] -> logits [sequences * length, vocabulary]. Throws Error (Code::usage)
/// for sequences longer than sequence_length.
class Transformer : public Module {
 public:
  Transformer(ParameterSet& parameters, const ModelDescription& description);

  std::vector<Module*> segments() override;  // the blocks

 protected:
  Tensor do_forward(const Tensor& tokens) override;
  Tensor do_backward(const Tensor& logits_gradient) override;

 private:
  Index length_ = 0;  // of the sequences in the current batch
  Index positions_;   // the longest there may be
  Embedding token_embedding_;
  Embedding position_embedding_;
  std::vector<std::unique_ptr<TransformerBlock>> blocks_;
  LayerNorm final_norm_;
  TiedHead head_;
};

}  // namespace zerolab
