#include "own_layer.hpp"

#include <utility>

using namespace zerolab;

namespace own {
namespace {

// A layer should compute with Device's functions, which every device has. For what they lack, a
// loop serves as long as the device is the CPU: its pointers are ordinary ones.
void scale_rows(const Tensor& in, const float* factors, const Tensor& out) {
  const Index width = in.width();
  for (Index i = 0; i < in.numel(); ++i) out.floats()[i] = factors[i % width] * in.floats()[i];
}

}  // namespace

// `own` tells the stage what to gather before this module runs. The name is how logs and error
// messages call the weight.
Scale::Scale(ParameterSet& parameters, std::string name, Index width)
    : Module(std::move(name)),
      weight_(own(parameters.add(this->name() + ".weight", {width}, Initial::ones()))) {}

Tensor Scale::do_forward(const Tensor& input) {
  Tensor output = activation(input.shape(), "output");
  // weight() throws if the parameter is not whole here: under stage 3 it comes and goes.
  scale_rows(input, weight(weight_), output);
  if (keeps()) inputs_.push_back(input);  // not in an evaluation, which has no backward
  return output;
}

Tensor Scale::do_backward(const Tensor& output_gradient) {
  const Tensor input = std::move(inputs_.back());
  inputs_.pop_back();

  // dw[j] = sum over i of dy[i, j] x[i, j], in row order: the order of a sum decides its bits.
  const Tensor products = activation(input.shape(), "weight gradient terms");
  for (Index i = 0; i < input.numel(); ++i) {
    products.floats()[i] = output_gradient.floats()[i] * input.floats()[i];
  }
  // Overwrites; the library adds the uses of a weight, the micro-steps and the ranks.
  add_gradient(weight_, [&](float* out) {
    device().sum_rows(input.rows(), input.width(), products.floats(), out);
  });

  Tensor input_gradient = activation(input.shape(), "input gradient");
  scale_rows(output_gradient, weight(weight_), input_gradient);
  return input_gradient;
}

}  // namespace own
