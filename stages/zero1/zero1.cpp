#include "stages/zero1/zero1.hpp"

#include <utility>

#include "stages/engine/publish.hpp"

namespace zerolab {

Zero1::Zero1(Runtime& runtime)
    : runtime_(runtime),
      sums_(runtime),
      buckets_(
          runtime, [this](const Bucket& bucket) { return runs_of(bucket); }, reduce_to_owners,
          [this](const Bucket& bucket) { keep_slice(bucket); }) {}

void Zero1::set_up(Model& model) {
  model_parameters_ = &model.parameters();
  layout_ = FlatLayout(model_parameters_->trainable_sizes(), runtime_.ranks());
  const Range whole{0, layout_.padded()};
  const Range slice = layout_.slice(runtime_.rank());
  const Settings& settings = runtime_.settings;
  parameters_ = FlatBuffer(runtime_, whole, settings.dtype, Category::parameters, "parameters");
  gradients_ =
      FlatBuffer(runtime_, whole, settings.accumulation_dtype(), Category::gradients, "gradients");
  optimizer_ = FlatOptimizer(runtime_, slice);
  sums_.set_up(layout_, gradients_);
  buckets_.set_up(layout_.padded());
  initialise_whole(runtime_, *model_parameters_, layout_, parameters_);
  frozen_.set_up(runtime_, *model_parameters_);
  initialise_masters(runtime_, owned());
}

// Every parameter is always whole.
void Zero1::fetch(const Visit& /*visit*/) {}
void Zero1::release(const Visit& /*visit*/) {}

// Micro-steps are added up where every rank keeps its whole gradient.
Values Zero1::gradient_buffer(Parameter& parameter, MicroStep micro_step) {
  return sums_.buffer(parameter, micro_step);
}

void Zero1::gradient_ready(Parameter& parameter, MicroStep micro_step) {
  if (auto sum = sums_.ready(parameter, micro_step)) buckets_.add(std::move(*sum));
}

std::vector<Run> Zero1::runs_of(const Bucket& bucket) const {
  std::vector<Run> runs;
  for (const ReadyGradient& gradient : bucket) {
    const Range range = layout_.padded_parameter(gradient.parameter->id());
    runs.push_back({gradient.data, layout_.slice_bounds(range)});
  }
  return runs;
}

// Of the reduced gradients only what lies in this rank's slice counts.
void Zero1::keep_slice(const Bucket& bucket) {
  for (const ReadyGradient& gradient : bucket) {
    const Range range = layout_.padded_parameter(gradient.parameter->id());
    const Range part = intersect(range, layout_.slice(runtime_.rank()));
    accumulate(runtime_, gradient.micro_step, gradient.data + (part.begin - range.begin),
               gradients_.at(part.begin), part.size());
  }
}

void Zero1::finish_gradients() { buckets_.flush(); }

std::vector<OwnedSlice> Zero1::owned() {
  return joined(flat_slices(*model_parameters_, layout_, layout_.slice(runtime_.rank()),
                            parameters_, gradients_, optimizer_),
                frozen_.share(runtime_));
}

void Zero1::publish() { publish_slices(runtime_, *model_parameters_, layout_, parameters_); }

void Zero1::end_pass() {}

}  // namespace zerolab
