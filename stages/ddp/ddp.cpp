#include "stages/ddp/ddp.hpp"

#include <utility>

namespace zerolab {

Ddp::Ddp(Runtime& runtime)
    : runtime_(runtime),
      sums_(runtime),
      buckets_(
          runtime, [this](const Bucket& bucket) { return runs_of(bucket); }, reduce_to_all,
          [this](const Bucket& bucket) { keep(bucket); }) {}

void Ddp::set_up(Model& model) {
  model_parameters_ = &model.parameters();
  layout_ = FlatLayout(model_parameters_->trainable_sizes(), runtime_.ranks());
  const Range whole{0, layout_.padded()};
  const Settings& settings = runtime_.settings;
  parameters_ = FlatBuffer(runtime_, whole, settings.dtype, Category::parameters, "parameters");
  gradients_ =
      FlatBuffer(runtime_, whole, settings.accumulation_dtype(), Category::gradients, "gradients");
  optimizer_ = FlatOptimizer(runtime_, whole);
  sums_.set_up(layout_, gradients_);
  buckets_.set_up(layout_.padded());
  initialise_whole(runtime_, *model_parameters_, layout_, parameters_);
  frozen_.set_up(runtime_, *model_parameters_);
  initialise_masters(runtime_, owned());
}

// Every parameter is always whole.
void Ddp::fetch(const Visit& /*visit*/) {}
void Ddp::release(const Visit& /*visit*/) {}

// Micro-steps are added up where every rank keeps its whole gradient.
Values Ddp::gradient_buffer(Parameter& parameter, MicroStep micro_step) {
  return sums_.buffer(parameter, micro_step);
}

void Ddp::gradient_ready(Parameter& parameter, MicroStep micro_step) {
  if (auto sum = sums_.ready(parameter, micro_step)) buckets_.add(std::move(*sum));
}

std::vector<Run> Ddp::runs_of(const Bucket& bucket) const {
  std::vector<Run> runs;
  for (const ReadyGradient& gradient : bucket) {
    const Range range = layout_.padded_parameter(gradient.parameter->id());
    runs.push_back({gradient.data, layout_.even_bounds(range)});
  }
  return runs;
}

// Every rank keeps all of the reduced gradients.
void Ddp::keep(const Bucket& bucket) {
  for (const ReadyGradient& gradient : bucket) {
    const Range range = layout_.padded_parameter(gradient.parameter->id());
    accumulate(runtime_, gradient.micro_step, gradient.data, gradients_.at(range.begin),
               range.size());
  }
}

void Ddp::finish_gradients() { buckets_.flush(); }

std::vector<OwnedSlice> Ddp::owned() {
  return joined(flat_slices(*model_parameters_, layout_, {0, layout_.padded()}, parameters_,
                            gradients_, optimizer_),
                frozen_.slices());
}

// Every rank has made the same update.
void Ddp::publish() {}

void Ddp::end_pass() {}

}  // namespace zerolab
