#pragma once

#include <memory>
#include <vector>

#include "stages/model/layers.hpp"
#include "stages/model/model.hpp"

namespace zerolab {

/// Predicts the next token from a window of embedded tokens (Bengio et al., JMLR 2003): the
/// embeddings of a window end to end, then linear layers with GELU between them.
/// int32 [sequences, sequence_length] -> logits [sequences, vocabulary]. Throws Error (Code::usage)
/// for sequences of another length.
class Mlp : public Module {
 public:
  Mlp(ParameterSet& parameters, const ModelDescription& description);

 protected:
  Tensor do_forward(const Tensor& tokens) override;
  Tensor do_backward(const Tensor& logits_gradient) override;

 private:
  Index window_;  // tokens of a sequence
  Embedding embedding_;
  std::vector<std::unique_ptr<Linear>> layers_;
  std::vector<std::unique_ptr<Gelu>> gelus_;  // one after each layer but the last
};

}  // namespace zerolab
