#include "stages/zero1/zero1.hpp"

#include <utility>

#include "stages/engine/publish.hpp"

namespace zerolab {

Zero1::Zero1(Runtime& runtime)
    : runtime_(runtime), buckets_(runtime, [this](const Bucket& bucket, std::string owner) {
        return reduce(bucket, std::move(owner));
      }) {}

void Zero1::set_up(Model& model) {
  model_parameters_ = &model.parameters();
  layout_ = FlatLayout(model_parameters_->trainable_sizes(), runtime_.ranks());
  const Range whole{0, layout_.padded()};
  const Range slice = layout_.slice(runtime_.rank());
  parameters_ = FlatBuffer(runtime_, whole, Category::parameters, "parameters");
  gradients_ = FlatBuffer(runtime_, whole, Category::gradients, "gradients");
  moments_ = flat_moments(runtime_, slice);
  buckets_.set_up(layout_.padded());
  initialise_whole(runtime_, *model_parameters_, layout_, parameters_);
  frozen_.set_up(runtime_, *model_parameters_);
}

// Every parameter is always whole.
void Zero1::fetch(const Visit& /*visit*/) {}
void Zero1::release(const Visit& /*visit*/) {}

// The first micro-step writes where the gradient stays; later ones are finished beside it.
float* Zero1::gradient_buffer(Parameter& parameter, MicroStep micro_step) {
  if (micro_step.first()) return gradients_.at(layout_.parameter(parameter.id()).begin);
  Buffer& held = held_[parameter.id()];
  held = hold_gradient(runtime_, parameter, parameter.numel());
  return held.floats();
}

void Zero1::gradient_ready(Parameter& parameter, MicroStep micro_step) {
  const Range range = layout_.padded_parameter(parameter.id());
  if (!micro_step.first()) {
    const Buffer held = std::move(held_.extract(parameter.id()).mapped());
    runtime_.device.add(gradients_.at(range.begin), held.floats(), parameter.numel());
  }
  if (micro_step.last()) buckets_.add({&parameter, Buffer(), range.size(), micro_step});
}

Pending Zero1::reduce(const Bucket& bucket, std::string owner) {
  std::vector<Run> runs;
  for (const ReadyGradient& gradient : bucket) {
    const Range range = layout_.padded_parameter(gradient.parameter->id());
    runs.push_back({gradients_.at(range.begin), layout_.slice_bounds(range)});
  }
  return reduce_to_owners(runtime_, runs, std::move(owner));
}

void Zero1::finish_gradients() { buckets_.flush(); }

std::vector<OwnedSlice> Zero1::owned() {
  return joined(flat_slices(*model_parameters_, layout_, layout_.slice(runtime_.rank()), gradients_,
                            parameters_, moments_),
                frozen_.share(runtime_));
}

void Zero1::publish() { publish_slices(runtime_, *model_parameters_, layout_, parameters_); }

void Zero1::end_pass() {}

}  // namespace zerolab
