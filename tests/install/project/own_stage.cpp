#include "own_stage.hpp"

#include <span>
#include <utility>

#include "stages/model/parameter_state.hpp"

using namespace zerolab;

namespace own {

ParameterServer::ParameterServer(Runtime& runtime)
    : runtime_(runtime),
      held_(runtime),
      buckets_(
          runtime, [this](const Bucket& bucket) { return runs_of(bucket); }, reduce_to_owners,
          [this](const Bucket& bucket) { keep_mean(bucket); }) {}

// The line that makes this stage what it is: everything is rank 0's.
Range ParameterServer::owned_range() const { return {0, is_server() ? layout_.padded() : 0}; }

void ParameterServer::set_up(Model& model) {
  model_parameters_ = &model.parameters();
  layout_ = FlatLayout(model_parameters_->trainable_sizes(), runtime_.ranks());
  const Settings& settings = runtime_.settings;
  parameters_ = FlatBuffer(runtime_, {0, layout_.padded()}, settings.dtype, Category::parameters,
                           "parameters");
  gradients_ = FlatBuffer(runtime_, owned_range(), settings.accumulation_dtype(),
                          Category::gradients, "gradients");
  optimizer_ = FlatOptimizer(runtime_, owned_range());
  buckets_.set_up(layout_.padded());
  initialise_whole(runtime_, *model_parameters_, layout_, parameters_);
  frozen_.set_up(runtime_, *model_parameters_);
  initialise_masters(runtime_, owned());
}

// Every parameter is always whole on every rank.
void ParameterServer::fetch(const Visit& /*visit*/) {}
void ParameterServer::release(const Visit& /*visit*/) {}

Values ParameterServer::gradient_buffer(Parameter& parameter, MicroStep /*micro_step*/) {
  return held_.hold(parameter, layout_.padded_parameter(parameter.id()).size());
}

void ParameterServer::gradient_ready(Parameter& parameter, MicroStep micro_step) {
  buckets_.add(held_.take(parameter, micro_step));
}

// A reduce-scatter whose parts are everything for rank 0 and nothing for the rest is a reduce. It
// adds in rank order and scales once, as in every stage: so the bits are theirs.
std::vector<Run> ParameterServer::runs_of(const Bucket& bucket) const {
  std::vector<Run> runs;
  for (const ReadyGradient& gradient : bucket) {
    std::vector<Index> bounds(static_cast<std::size_t>(runtime_.ranks()) + 1, gradient.elements);
    bounds.front() = 0;
    runs.push_back({gradient.data, std::move(bounds)});
  }
  return runs;
}

// The bucket frees the whole gradients, so the server keeps a copy.
void ParameterServer::keep_mean(const Bucket& bucket) {
  if (!is_server()) return;
  for (const ReadyGradient& gradient : bucket) {
    const Range range = layout_.padded_parameter(gradient.parameter->id());
    accumulate(runtime_, gradient.micro_step, gradient.data, gradients_.at(range.begin),
               range.size());
  }
}

void ParameterServer::finish_gradients() { buckets_.flush(); }

// The engine updates, and counts in norm and hash, what is named here: on the other ranks nothing.
std::vector<OwnedSlice> ParameterServer::owned() {
  return joined(
      flat_slices(*model_parameters_, layout_, owned_range(), parameters_, gradients_, optimizer_),
      frozen_.share(runtime_));
}

// While the new weights are on their way nobody may read them: the states say so, and are checked.
void ParameterServer::publish() {
  const auto move_all = [this](Status to) {
    for (Parameter& parameter : *model_parameters_) {
      if (!parameter.requires_grad()) continue;
      ParameterState::move(parameter, to, Cause::publish, "", runtime_.recorder);
    }
  };
  const std::span<std::byte> weights = bytes_of(parameters_.at(0), layout_.padded());
  move_all(Status::inflight);
  Pending weights_sent = broadcast(runtime_.comm, weights, 0, "parameters");
  runtime_.comm.wait(weights_sent);
  move_all(Status::available);
}

void ParameterServer::end_pass() {}

}  // namespace own
