#include "tests/support/scripted.hpp"

#include <cmath>
#include <utility>

#include "tests/support/layers.hpp"

namespace zerolab::test {

Scripted::Scripted(ParameterSet& parameters, std::string name, Shape shape, Script script)
    : Module(std::move(name)),
      parameter_(
          own(parameters.add(this->name() + ".weight", std::move(shape), Initial::normal(1)))),
      script_(std::move(script)) {}

Scripted::Scripted(std::string name, Parameter& foreign, Script script)
    : Module(std::move(name)), parameter_(foreign), script_(std::move(script)) {
  register_external_parameter(*this, foreign);
}

Tensor Scripted::do_forward(const Tensor& input) {
  weight(parameter_);
  return input;
}

Tensor Scripted::do_backward(const Tensor& output_gradient) {
  const Recorder& recorder = context().recorder;
  const Moment now{recorder.rank(), recorder.step(), recorder.micro_step()};
  const float scale = loss_scale(output_gradient);
  add_gradient(parameter_, [&](Values out) {
    std::vector<float> values;
    for (Index i = 0; i < parameter_.numel(); ++i) values.push_back(scale * script_(i, now));
    device().copy(out, values.data(), parameter_.numel());
  });
  return output_gradient;
}

// The loss of Blank's logits, two zeros, has the gradients scale / rows * (1/2 - 1) and half of it.
float Scripted::loss_scale(const Tensor& output_gradient) const {
  if (context().dtype != Dtype::fp16) return 1;
  float value = 0;
  device().copy(&value, output_gradient.values(), 1);
  return 2 * std::abs(value) * static_cast<float>(output_gradient.rows());
}

Tensor Blank::do_forward(const Tensor& tokens) {
  Tensor logits = activation({tokens.numel(), kBlankVocabulary}, "logits");
  device().fill(logits.values(), logits.numel(), 0);
  return logits;
}

Tensor Blank::do_backward(const Tensor& /*output_gradient*/) { return {}; }

Training training_of_script(const std::vector<Shape>& shapes, const Script& script, int stage) {
  const Chain chain = [=](ParameterSet& parameters) {
    Links links{std::make_shared<Blank>()};
    for (std::size_t i = 0; i < shapes.size(); ++i) {
      links.push_back(std::make_shared<Scripted>(parameters, std::to_string(i), shapes[i], script));
    }
    return links;
  };
  return plain(training_of_chain(chain, kBlankVocabulary, stage), 1);
}

}  // namespace zerolab::test
