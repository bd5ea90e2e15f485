#include "stages/zero3/zero3.hpp"

#include <fmt/format.h>

#include <utility>

#include "stages/base/error.hpp"
#include "stages/zero3/persistence.hpp"

namespace zerolab {

namespace {

std::vector<Index> ids_of(const std::vector<Parameter*>& parameters) {
  std::vector<Index> ids;
  ids.reserve(parameters.size());
  for (const Parameter* parameter : parameters) ids.push_back(parameter->id());
  return ids;
}

}  // namespace

Zero3::Zero3(Runtime& runtime)
    : runtime_(runtime),
      memory_(runtime, coordinator_, gathered_),
      gathered_(runtime),
      held_(runtime),
      buckets_(
          runtime, [this](const Bucket& bucket) { return runs_of(bucket); }, reduce_to_owners,
          [this](const Bucket& bucket) { keep_piece(bucket); }) {}

void Zero3::set_up(Model& model) {
  model_parameters_ = &model.parameters();
  layout_ = Pieces(model_parameters_->sizes(), runtime_.ranks());
  trainable_ = Pieces(model_parameters_->trainable_sizes(), runtime_.ranks());
  const Settings& settings = runtime_.settings;
  parameters_ = PieceBuffer(runtime_, layout_, settings.dtype, Category::parameters, "parameters");
  gradients_ = PieceBuffer(runtime_, trainable_, settings.accumulation_dtype(), Category::gradients,
                           "gradients");
  optimizer_ = PieceOptimizer(runtime_, trainable_);
  for (const Parameter& parameter : *model_parameters_) {
    const Range owned = layout_.of(parameter).owned(runtime_.rank());
    initialise(runtime_, parameter, owned, parameters_.of(parameter));
  }
  initialise_masters(runtime_, owned());
  buckets_.set_up(trainable_.per_rank() * runtime_.ranks());

  const ZeroSettings& zero = runtime_.settings.zero;
  const std::vector<Index> sizes = model_parameters_->sizes();
  persistent_ = persistent_parameters(sizes, zero);
  coordinator_ = Coordinator(sizes, persistent_, fetch_limits(zero));
  gathered_.set_up(*model_parameters_, layout_, parameters_, memory_);
  memory_.set_up(*model_parameters_);
}

// Afterwards what the module reads is whole; what the next ones read may be on its way.
void Zero3::fetch(const Visit& visit) {
  const Stop stop = stop_of(visit);
  memory_.begin_event();
  try {
    carry_out(coordinator_.before(stop), &visit.module);
  } catch (...) {
    coordinator_.after(stop);  // the module does not run; abandon_pass lets go what is there
    throw;
  }
}

void Zero3::fetch_also(const Visit& visit, Parameter& parameter) {
  memory_.begin_event();
  carry_out(coordinator_.also_reads(stop_of(visit), parameter.id()), &visit.module);
}

// Lets go what nobody reads any more, or not soon.
void Zero3::release(const Visit& visit) {
  memory_.begin_event();
  carry_out(coordinator_.after(stop_of(visit)), &visit.module);
}

// A whole gradient is held for a moment only.
Values Zero3::gradient_buffer(Parameter& parameter, MicroStep /*micro_step*/) {
  return held_.hold(parameter, layout_.of(parameter).padded());
}

void Zero3::gradient_ready(Parameter& parameter, MicroStep micro_step) {
  buckets_.add(held_.take(parameter, micro_step));
}

std::vector<Run> Zero3::runs_of(const Bucket& bucket) const {
  std::vector<Run> runs;
  for (const ReadyGradient& gradient : bucket) {
    runs.push_back({gradient.data, layout_.of(*gradient.parameter).bounds()});
  }
  return runs;
}

// Of the reduced gradients this rank keeps its pieces; the bucket frees the rest.
void Zero3::keep_piece(const Bucket& bucket) {
  for (const ReadyGradient& gradient : bucket) {
    const Index size = layout_.of(*gradient.parameter).piece_size();
    accumulate(runtime_, gradient.micro_step, gradient.data + runtime_.rank() * size,
               gradients_.of(*gradient.parameter), size);
  }
}

void Zero3::finish_gradients() { buckets_.flush(); }

std::vector<OwnedSlice> Zero3::owned() {
  std::vector<OwnedSlice> slices;
  for (Parameter& parameter : *model_parameters_) {
    const Range range = layout_.of(parameter).owned(runtime_.rank());
    if (range.size() == 0) continue;
    OwnedSlice slice{.parameter = &parameter, .range = range, .weights = parameters_.of(parameter)};
    if (parameter.requires_grad()) {
      slice.gradient = gradients_.of(parameter);
      optimizer_.give(slice, parameters_,
                      [&](const PieceBuffer& buffer) { return buffer.of(parameter); });
    }
    slices.push_back(slice);
  }
  return slices;
}

// The pieces are the weights; the next fetch sends them. What persists is gathered now.
void Zero3::publish() {
  std::vector<bool> updated;
  for (const Parameter& each : *model_parameters_) updated.push_back(each.requires_grad());
  memory_.begin_event();
  carry_out(coordinator_.publish(updated), nullptr);
}

void Zero3::end_pass() {
  carry_out(coordinator_.end_pass(true), nullptr);
  check_that_all_rest();
  if (const std::vector<Stop>* order = coordinator_.recorded()) {
    check_same_order(runtime_.comm, *order, modules_);
  }
}

void Zero3::abandon_pass() {
  coordinator_.end_pass(false);
  gathered_.let_all_go(persistent_);
}

void Zero3::gather(const std::vector<Parameter*>& parameters) {
  const std::vector<Index> ids = ids_of(parameters);
  memory_.begin_event();
  try {
    carry_out(coordinator_.open_scope(ids), nullptr);
  } catch (...) {
    coordinator_.close_scope(ids);
    throw;
  }
}

void Zero3::take_over(const Parameter& parameter) { gathered_.take_over(parameter); }

void Zero3::let_go(const std::vector<Parameter*>& parameters) {
  memory_.begin_event();
  carry_out(coordinator_.close_scope(ids_of(parameters)), nullptr);
}

Stop Zero3::stop_of(const Visit& visit) {
  return {modules_.of(visit.module), visit.kind, ids_of(visit.module.reads())};
}

void Zero3::carry_out(const Decision& decision, const Module* module) {
  if (decision.change) note(*decision.change);
  gathered_.carry_out(decision.actions, module);
  memory_.end_event();
}

void Zero3::note(const OrderChange& change) {
  const std::string text = fmt::format(
      "step {}: the order of modules has changed after {} visits of the pass: expected {}, got {}; "
      "it is recorded anew, and nothing is prefetched until the next pass",
      runtime_.recorder.step(), change.at, modules_.describe(change.expected),
      modules_.describe(change.got));
  runtime_.recorder.record(NoteEvent{text});
}

void Zero3::check_that_all_rest() const {
  for (const Parameter& parameter : *model_parameters_) {
    if (parameter.status() == Status::not_available || parameter.in_scope()) continue;
    const bool persists = persistent_[static_cast<std::size_t>(parameter.id())];
    if (persists && parameter.status() == Status::available && parameter.active() == 0) continue;
    throw Error(Code::left_gathered,
                fmt::format("parameter '{}' on rank {} is {} after the pass, with {} running "
                            "module(s)",
                            parameter.name(), runtime_.rank(), name_of(parameter.status()),
                            parameter.active()),
                "every fetch needs its release: run modules through forward() and backward()");
  }
}

}  // namespace zerolab
