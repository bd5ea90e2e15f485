#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tests/support/chain.hpp"

namespace zerolab::test {

/// Whose gradient is asked for, and when.
struct Moment {
  int rank = 0;
  Index step = 0, micro_step = 0;  // steps count from 1, micro-steps from 0
};
using Script = std::function<float(Index element, const Moment&)>;

/// Reads one parameter, passes its input on, and gives the gradient that the script says; in fp16
/// times the loss scale. (With micro-batches of 1 or 2 the scale is seen exactly.)
class Scripted : public Module {
 public:
  /// With a parameter of its own, `name`.weight, drawn from the standard normal distribution.
  Scripted(ParameterSet& parameters, std::string name, Shape shape, Script script);
  /// With the parameter of another module, registered as external.
  Scripted(std::string name, Parameter& foreign, Script script);

 protected:
  Tensor do_forward(const Tensor& input) override;
  Tensor do_backward(const Tensor& output_gradient) override;

 private:
  float loss_scale(const Tensor& output_gradient) const;

  Parameter& parameter_;
  Script script_;
};

/// The first link of a chain whose gradients are made up: tokens in, logits out that are all zero.
class Blank : public Module {
 public:
  Blank() : Module("blank") {}

 protected:
  Tensor do_forward(const Tensor& tokens) override;
  Tensor do_backward(const Tensor& output_gradient) override;
};
inline constexpr Index kBlankVocabulary = 2;

/// Parameters "0.weight", "1.weight"... of these shapes and nothing else, one script for all: ten
/// steps of plain gradient descent at learning rate 1, without clipping and weight decay. Gradients
/// get ready from the last parameter to the first.
Training training_of_script(const std::vector<Shape>& shapes, const Script& script, int stage);

}  // namespace zerolab::test
