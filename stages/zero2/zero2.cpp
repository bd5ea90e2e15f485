#include "stages/zero2/zero2.hpp"

#include <utility>

#include "stages/engine/publish.hpp"

namespace zerolab {

Zero2::Zero2(Runtime& runtime)
    : runtime_(runtime),
      held_(runtime),
      buckets_(
          runtime, [this](const Bucket& bucket) { return runs_of(bucket); }, reduce_to_owners,
          [this](const Bucket& bucket) { keep_slice(bucket); }) {}

void Zero2::set_up(Model& model) {
  model_parameters_ = &model.parameters();
  layout_ = FlatLayout(model_parameters_->trainable_sizes(), runtime_.ranks());
  const Range whole{0, layout_.padded()};
  const Range slice = layout_.slice(runtime_.rank());
  const Settings& settings = runtime_.settings;
  parameters_ = FlatBuffer(runtime_, whole, settings.dtype, Category::parameters, "parameters");
  gradients_ =
      FlatBuffer(runtime_, slice, settings.accumulation_dtype(), Category::gradients, "gradients");
  optimizer_ = FlatOptimizer(runtime_, slice);
  buckets_.set_up(layout_.padded());
  initialise_whole(runtime_, *model_parameters_, layout_, parameters_);
  frozen_.set_up(runtime_, *model_parameters_);
  initialise_masters(runtime_, owned());
}

// Every parameter is always whole.
void Zero2::fetch(const Visit& /*visit*/) {}
void Zero2::release(const Visit& /*visit*/) {}

// A whole gradient is held for a moment only.
Values Zero2::gradient_buffer(Parameter& parameter, MicroStep /*micro_step*/) {
  return held_.hold(parameter, layout_.padded_parameter(parameter.id()).size());
}

void Zero2::gradient_ready(Parameter& parameter, MicroStep micro_step) {
  buckets_.add(held_.take(parameter, micro_step));
}

std::vector<Run> Zero2::runs_of(const Bucket& bucket) const {
  std::vector<Run> runs;
  for (const ReadyGradient& gradient : bucket) {
    const Range range = layout_.padded_parameter(gradient.parameter->id());
    runs.push_back({gradient.data, layout_.slice_bounds(range)});
  }
  return runs;
}

// Of the reduced gradients this rank keeps what lies in its slice; the bucket frees the rest.
void Zero2::keep_slice(const Bucket& bucket) {
  for (const ReadyGradient& gradient : bucket) {
    const Range range = layout_.padded_parameter(gradient.parameter->id());
    const Range part = intersect(range, layout_.slice(runtime_.rank()));
    accumulate(runtime_, gradient.micro_step, gradient.data + (part.begin - range.begin),
               gradients_.at(part.begin), part.size());
  }
}

void Zero2::finish_gradients() { buckets_.flush(); }

std::vector<OwnedSlice> Zero2::owned() {
  return joined(flat_slices(*model_parameters_, layout_, layout_.slice(runtime_.rank()),
                            parameters_, gradients_, optimizer_),
                frozen_.share(runtime_));
}

void Zero2::publish() { publish_slices(runtime_, *model_parameters_, layout_, parameters_); }

void Zero2::end_pass() {}

}  // namespace zerolab
