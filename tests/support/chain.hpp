#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tests/support/trainings.hpp"

namespace zerolab::test {

/// Modules in the order they run, from tokens to logits. One that comes twice runs twice.
using Links = std::vector<std::shared_ptr<Module>>;
/// Makes them; it may register external parameters too.
using Chain = std::function<Links(ParameterSet&)>;

/// Ten steps of a chain whose logits have this width, sequences of one token.
Training training_of_chain(const Chain& chain, Index vocabulary, int stage);

/// Runs modules one after the other, as a model or as a part of one.
class ChainModule : public Module {
 public:
  ChainModule(std::string name, Links links);

 protected:
  Tensor do_forward(const Tensor& input) override;
  Tensor do_backward(const Tensor& output_gradient) override;

 private:
  Links links_;
};

/// One rank, stage 0, on the batches that `ranks` ranks would have had, side by side.
Training alone(Training training, int ranks);

}  // namespace zerolab::test
