#include "tests/support/scripted.hpp"

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
  add_gradient(parameter_, [&](float* out) {
    for (Index i = 0; i < parameter_.numel(); ++i) out[i] = script_(i, now);
  });
  return output_gradient;
}

Tensor Blank::do_forward(const Tensor& tokens) {
  Tensor logits = activation({tokens.numel(), kBlankVocabulary}, "logits");
  device().fill(logits.floats(), logits.numel(), 0);
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
