#include "stages/zero3/zero3.hpp"

#include <fmt/format.h>

#include <utility>

#include "stages/base/error.hpp"
#include "stages/model/parameter_state.hpp"
#include "stages/optim/optimizer.hpp"

namespace zerolab {

Zero3::Zero3(Runtime& runtime)
    : runtime_(runtime),
      buckets_(
          runtime,
          [this](const Bucket& bucket, std::string owner) {
            return reduce(bucket, std::move(owner));
          },
          [this](const Bucket& bucket) { keep_piece(bucket); }) {}

void Zero3::set_up(Model& model) {
  model_parameters_ = &model.parameters();
  layout_ = Pieces(model_parameters_->sizes(), runtime_.ranks());
  parameters_ = PieceBuffer(runtime_, layout_, Category::parameters, "parameters");
  gradients_ = PieceBuffer(runtime_, layout_, Category::gradients, "gradients");
  for (int i = 1; i <= moments_needed(runtime_.settings.optimizer); ++i) {
    moments_.emplace_back(runtime_, layout_, Category::optimizer, fmt::format("moment {}", i));
  }
  for (const Parameter& parameter : *model_parameters_) {
    const Range owned = layout_.of(parameter).owned(runtime_.rank());
    initialise(runtime_, parameter, owned, parameters_.of(parameter));
  }
}

// Gathers what the module reads and this rank does not hold whole.
void Zero3::fetch(const Visit& visit) {
  const std::string& module = visit.module.name();
  std::vector<Parameter*> missing;
  std::vector<Run> runs;
  for (Parameter* parameter : visit.module.reads()) {
    if (parameter->status() != Status::not_available) continue;
    const PieceLayout& pieces = layout_.of(*parameter);
    Buffer whole = runtime_.ledger.allocate(pieces.padded() * size_of(Dtype::fp32),
                                            Category::gather_buffers, parameter->name());
    runtime_.device.copy(whole.floats() + runtime_.rank() * pieces.piece_size(),
                         parameters_.of(*parameter), pieces.piece_size());
    runs.push_back({whole.floats(), pieces.bounds()});
    gathered_[parameter->id()] = std::move(whole);
    ParameterState::move(*parameter, Status::inflight, Cause::fetch, module, runtime_.recorder);
    missing.push_back(parameter);
  }
  Pending gather = all_gather(runtime_.comm, runs, names_of(missing));
  runtime_.comm.wait(gather);
  for (Parameter* parameter : missing) {
    parameter->data = gathered_[parameter->id()].floats();
    ParameterState::move(*parameter, Status::available, Cause::fetch, module, runtime_.recorder);
  }
}

// Lets go what no other running module reads.
void Zero3::release(const Visit& visit) {
  for (Parameter* parameter : visit.module.reads()) {
    if (parameter->active > 0) continue;
    ParameterState::move(*parameter, Status::not_available, Cause::release, visit.module.name(),
                         runtime_.recorder);
    parameter->data = nullptr;
    gathered_.erase(parameter->id());
  }
}

// A whole gradient is held for a moment only.
float* Zero3::gradient_buffer(Parameter& parameter, MicroStep /*micro_step*/) {
  Buffer& held = held_[parameter.id()];
  held = hold_gradient(runtime_, parameter, layout_.of(parameter).padded());
  return held.floats();
}

void Zero3::gradient_ready(Parameter& parameter, MicroStep micro_step) {
  Buffer held = std::move(held_.extract(parameter.id()).mapped());
  buckets_.add({&parameter, std::move(held), layout_.of(parameter).padded(), micro_step});
}

Pending Zero3::reduce(const Bucket& bucket, std::string owner) {
  std::vector<Run> runs;
  for (const ReadyGradient& gradient : bucket) {
    runs.push_back({gradient.whole.floats(), layout_.of(*gradient.parameter).bounds()});
  }
  return reduce_scatter(runtime_.comm, runs, mean_factor(runtime_), std::move(owner));
}

// Of the reduced gradients this rank keeps its pieces; the bucket frees the rest.
void Zero3::keep_piece(const Bucket& bucket) {
  for (const ReadyGradient& gradient : bucket) {
    const Index size = layout_.of(*gradient.parameter).piece_size();
    accumulate(runtime_, gradient.micro_step, gradient.whole.floats() + runtime_.rank() * size,
               gradients_.of(*gradient.parameter), size);
  }
}

void Zero3::finish_gradients() { buckets_.flush(); }

std::vector<OwnedSlice> Zero3::owned() {
  std::vector<OwnedSlice> slices;
  for (Parameter& parameter : *model_parameters_) {
    const Range range = layout_.of(parameter).owned(runtime_.rank());
    if (range.size() == 0) continue;
    OwnedSlice slice{&parameter, range, gradients_.of(parameter), parameters_.of(parameter), {}};
    for (std::size_t i = 0; i < moments_.size(); ++i) slice.moments[i] = moments_[i].of(parameter);
    slices.push_back(slice);
  }
  return slices;
}

// The pieces are the weights; the next fetch sends them.
void Zero3::publish() {}

void Zero3::end_pass() {
  for (const Parameter& parameter : *model_parameters_) {
    if (parameter.status() == Status::not_available) continue;
    throw Error(Code::left_gathered,
                fmt::format("parameter '{}' on rank {} is {} after the pass, with {} running "
                            "module(s)",
                            parameter.name(), runtime_.rank(), name_of(parameter.status()),
                            parameter.active),
                "every fetch needs its release: run modules through forward() and backward()");
  }
}

}  // namespace zerolab
