#include "stages/ddp/ddp.hpp"

#include <utility>

namespace zerolab {

Ddp::Ddp(Runtime& runtime)
    : runtime_(runtime), buckets_(runtime, [this](const Bucket& bucket, std::string owner) {
        return reduce(bucket, std::move(owner));
      }) {}

void Ddp::set_up(Model& model) {
  model_parameters_ = &model.parameters();
  layout_ = FlatLayout(model_parameters_->trainable_sizes(), runtime_.ranks());
  const Range whole{0, layout_.padded()};
  parameters_ = FlatBuffer(runtime_, whole, Category::parameters, "parameters");
  gradients_ = FlatBuffer(runtime_, whole, Category::gradients, "gradients");
  moments_ = flat_moments(runtime_, whole);
  buckets_.set_up(layout_.padded());
  initialise_whole(runtime_, *model_parameters_, layout_, parameters_);
  frozen_.set_up(runtime_, *model_parameters_);
}

// Every parameter is always whole.
void Ddp::fetch(const Visit& /*visit*/) {}
void Ddp::release(const Visit& /*visit*/) {}

// The first micro-step writes where the gradient stays; later ones are finished beside it.
float* Ddp::gradient_buffer(Parameter& parameter, MicroStep micro_step) {
  if (micro_step.first()) return gradients_.at(layout_.parameter(parameter.id()).begin);
  Buffer& held = held_[parameter.id()];
  held = hold_gradient(runtime_, parameter, parameter.numel());
  return held.floats();
}

void Ddp::gradient_ready(Parameter& parameter, MicroStep micro_step) {
  const Range range = layout_.padded_parameter(parameter.id());
  if (!micro_step.first()) {
    const Buffer held = std::move(held_.extract(parameter.id()).mapped());
    runtime_.device.add(gradients_.at(range.begin), held.floats(), parameter.numel());
  }
  if (micro_step.last()) buckets_.add({&parameter, Buffer(), range.size(), micro_step});
}

Pending Ddp::reduce(const Bucket& bucket, std::string owner) {
  std::vector<Run> runs;
  for (const ReadyGradient& gradient : bucket) {
    const Range range = layout_.padded_parameter(gradient.parameter->id());
    runs.push_back({gradients_.at(range.begin), layout_.even_bounds(range)});
  }
  return all_reduce(runtime_.comm, runs, mean_factor(runtime_), std::move(owner));
}

void Ddp::finish_gradients() { buckets_.flush(); }

std::vector<OwnedSlice> Ddp::owned() {
  return joined(flat_slices(*model_parameters_, layout_, {0, layout_.padded()}, gradients_,
                            parameters_, moments_),
                frozen_.slices());
}

// Every rank has made the same update.
void Ddp::publish() {}

void Ddp::end_pass() {}

}  // namespace zerolab
