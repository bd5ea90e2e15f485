#include "stages/model/layers.hpp"

#include <utility>

#include "stages/model/linear_products.hpp"

namespace zerolab {
namespace {

Tensor take_last(std::vector<Tensor>& kept) {
  Tensor last = std::move(kept.back());
  kept.pop_back();
  return last;
}

}  // namespace

Linear::Linear(ParameterSet& parameters, std::string name, Index in, Index out, Initial initial)
    : Module(std::move(name)),
      in_(in),
      out_(out),
      weight_(own(parameters.add(this->name() + ".weight", {out, in}, initial))),
      bias_(own(parameters.add(this->name() + ".bias", {out}, Initial::zeros()))) {}

Tensor Linear::do_forward(const Tensor& input) {
  const Index rows = input.rows();
  Tensor output = activation({rows, out_}, "output");
  device().matmul(forward_product(rows, in_, out_, true), input.values(), weight(weight_),
                  weight(bias_), output.values());
  if (keeps()) inputs_.push_back(input);
  return output;
}

Tensor Linear::do_backward(const Tensor& output_gradient) {
  const Tensor input = take_last(inputs_);
  const Index rows = input.rows();
  const ConstValues dy = output_gradient.values();
  add_gradient(bias_, [&](Values out) { device().sum_rows(rows, out_, dy, out); });
  add_gradient(weight_, [&](Values out) {
    device().matmul(weight_gradient_product(rows, in_, out_), dy, input.values(), nullptr, out);
  });
  Tensor input_gradient = activation(input.shape(), "input gradient");
  device().matmul(input_gradient_product(rows, in_, out_), dy, weight(weight_), nullptr,
                  input_gradient.values());
  return input_gradient;
}

TiedHead::TiedHead(std::string name, Parameter& table)
    : Module(std::move(name)),
      vocabulary_(table.shape()[0]),
      width_(table.shape()[1]),
      table_(table) {}

Tensor TiedHead::do_forward(const Tensor& input) {
  const Index rows = input.rows();
  Tensor output = activation({rows, vocabulary_}, "output");
  device().matmul(forward_product(rows, width_, vocabulary_, false), input.values(), weight(table_),
                  nullptr, output.values());
  if (keeps()) inputs_.push_back(input);
  return output;
}

Tensor TiedHead::do_backward(const Tensor& output_gradient) {
  const Tensor input = take_last(inputs_);
  const Index rows = input.rows();
  const ConstValues dy = output_gradient.values();
  add_gradient(table_, [&](Values out) {
    device().matmul(weight_gradient_product(rows, width_, vocabulary_), dy, input.values(), nullptr,
                    out);
  });
  Tensor input_gradient = activation(input.shape(), "input gradient");
  device().matmul(input_gradient_product(rows, width_, vocabulary_), dy, weight(table_), nullptr,
                  input_gradient.values());
  return input_gradient;
}

Embedding::Embedding(ParameterSet& parameters, std::string name, Index vocabulary, Index width,
                     Initial initial)
    : Module(std::move(name)),
      vocabulary_(vocabulary),
      width_(width),
      table_(own(parameters.add(this->name() + ".weight", {vocabulary, width}, initial))) {}

Tensor Embedding::do_forward(const Tensor& input) {
  Tensor output = activation({input.numel(), width_}, "output");
  device().embedding(input.numel(), width_, input.ints(), weight(table_), output.values());
  if (keeps()) inputs_.push_back(input);
  return output;
}

Tensor Embedding::do_backward(const Tensor& output_gradient) {
  const Tensor input = take_last(inputs_);
  add_gradient(table_, [&](Values out) {
    device().embedding_backward(input.numel(), width_, vocabulary_, input.ints(),
                                output_gradient.values(), out);
  });
  return {};  // tokens have no gradient
}

LayerNorm::LayerNorm(ParameterSet& parameters, std::string name, Index width)
    : Module(std::move(name)),
      gain_(own(parameters.add(this->name() + ".weight", {width}, Initial::ones()))),
      bias_(own(parameters.add(this->name() + ".bias", {width}, Initial::zeros()))) {}

Tensor LayerNorm::do_forward(const Tensor& input) {
  const Index rows = input.rows();
  Tensor output = activation(input.shape(), "output");
  Tensor mean = activation({rows}, "mean", Dtype::fp32);
  Tensor variance = activation({rows}, "variance", Dtype::fp32);
  device().layer_norm(rows, input.width(), kEpsilon, input.values(), weight(gain_), weight(bias_),
                      output.values(), mean.floats(), variance.floats());
  if (keeps()) kept_.push_back({input, mean, variance});
  return output;
}

Tensor LayerNorm::do_backward(const Tensor& output_gradient) {
  const Kept kept = std::move(kept_.back());
  kept_.pop_back();
  Tensor input_gradient = activation(kept.input.shape(), "input gradient");
  add_gradient_with_others(gain_, [&](Values gain_gradient) {
    add_gradient_with_others(bias_, [&](Values bias_gradient) {
      device().layer_norm_backward(kept.input.rows(), kept.input.width(), kEpsilon,
                                   kept.input.values(), weight(gain_), kept.mean.floats(),
                                   kept.variance.floats(), output_gradient.values(),
                                   input_gradient.values(), gain_gradient, bias_gradient);
    });
  });
  return input_gradient;
}

Tensor Gelu::do_forward(const Tensor& input) {
  Tensor output = activation(input.shape(), "output");
  device().gelu(input.numel(), input.values(), output.values());
  if (keeps()) inputs_.push_back(input);
  return output;
}

Tensor Gelu::do_backward(const Tensor& output_gradient) {
  const Tensor input = take_last(inputs_);
  Tensor input_gradient = activation(input.shape(), "input gradient");
  device().gelu_backward(input.numel(), input.values(), output_gradient.values(),
                         input_gradient.values());
  return input_gradient;
}

}  // namespace zerolab
