#include "stages/engine/states.hpp"

#include <fmt/format.h>

#include <utility>

#include "stages/model/parameter_state.hpp"

namespace zerolab {
namespace {

void start_whole(Runtime& runtime, Parameter& parameter, Values data) {
  parameter.data = data;
  initialise(runtime, parameter, {0, parameter.numel()}, data);
  ParameterState::move(parameter, Status::available, Cause::set_up, "", runtime.recorder);
}

}  // namespace

FlatBuffer::FlatBuffer(Runtime& runtime, Range range, Dtype dtype, Category category,
                       std::string owner)
    : buffer_(runtime.ledger.allocate(range.size() * size_of(dtype), category, std::move(owner),
                                      runtime.model_states)),
      range_(range),
      dtype_(dtype) {
  runtime.device.fill(buffer_.values(dtype), range.size(), 0);
}

std::vector<OwnedSlice> flat_slices(ParameterSet& parameters, const FlatLayout& layout, Range owned,
                                    const FlatBuffer& weights, const FlatBuffer& gradients,
                                    const FlatOptimizer& optimizer) {
  std::vector<OwnedSlice> slices;
  for (Parameter& parameter : parameters) {
    const Range whole = layout.parameter(parameter.id());
    const Range part = intersect(whole, owned);
    if (part.size() == 0) continue;
    OwnedSlice slice{.parameter = &parameter,
                     .range = {part.begin - whole.begin, part.end - whole.begin},
                     .weights = weights.at(part.begin),
                     .gradient = gradients.at(part.begin)};
    optimizer.give(slice, weights, [&](const FlatBuffer& of) { return of.at(part.begin); });
    slices.push_back(slice);
  }
  return slices;
}

void FrozenParameters::set_up(Runtime& runtime, ParameterSet& parameters) {
  parameters_ = &parameters;
  const FlatLayout layout(parameters.frozen_sizes(), 1);
  if (layout.total() == 0) return;
  const Dtype dtype = runtime.settings.dtype;
  buffer_ = runtime.ledger.allocate(layout.total() * size_of(dtype), Category::parameters,
                                    "frozen parameters", runtime.model_states);
  for (Parameter& parameter : parameters) {
    if (parameter.requires_grad()) continue;
    start_whole(runtime, parameter, buffer_.values(dtype) + layout.parameter(parameter.id()).begin);
  }
}

std::vector<OwnedSlice> FrozenParameters::slices() const {
  std::vector<OwnedSlice> slices;
  for (Parameter& parameter : *parameters_) {
    if (parameter.requires_grad()) continue;
    slices.push_back({&parameter, {0, parameter.numel()}, parameter.data});
  }
  return slices;
}

std::vector<OwnedSlice> FrozenParameters::share(const Runtime& runtime) const {
  return share_of(slices(), runtime.rank(), runtime.ranks());
}

std::vector<OwnedSlice> joined(std::vector<OwnedSlice> slices,
                               const std::vector<OwnedSlice>& more) {
  slices.insert(slices.end(), more.begin(), more.end());
  return slices;
}

void initialise(Runtime& runtime, const Parameter& parameter, Range range, Values out) {
  switch (parameter.initial().kind) {
    case Initial::Kind::zeros:
      runtime.device.fill(out, range.size(), 0);
      break;
    case Initial::Kind::ones:
      runtime.device.fill(out, range.size(), 1);
      break;
    case Initial::Kind::normal:
      runtime.device.random_normal(out, range.begin, range.size(), runtime.seed,
                                   static_cast<std::uint64_t>(parameter.id()),
                                   parameter.initial().deviation);
      break;
  }
}

void initialise_whole(Runtime& runtime, ParameterSet& parameters, const FlatLayout& layout,
                      const FlatBuffer& buffer) {
  for (Parameter& parameter : parameters) {
    if (!parameter.requires_grad()) continue;
    start_whole(runtime, parameter, buffer.at(layout.parameter(parameter.id()).begin));
  }
}

void initialise_masters(Runtime& runtime, const std::vector<OwnedSlice>& slices) {
  for (const OwnedSlice& slice : slices) {
    if (slice.master == nullptr || slice.master == slice.weights.data()) continue;
    initialise(runtime, *slice.parameter, slice.range, slice.master);
  }
}

std::string names_of(const std::vector<Parameter*>& parameters) {
  if (parameters.empty()) return {};
  const std::string& first = parameters.front()->name();
  if (parameters.size() == 1) return first;
  return fmt::format("{} .. {} ({} parameters)", first, parameters.back()->name(),
                     parameters.size());
}

std::vector<float> floats_on_host(Runtime& runtime, ConstValues values, Index n) {
  std::vector<float> result(static_cast<std::size_t>(n));
  Buffer widened;
  if (values.dtype() != Dtype::fp32) {
    widened = runtime.ledger.allocate(n * size_of(Dtype::fp32), Category::workspace,
                                      "16-bit values as fp32");
    runtime.device.copy(widened.floats(), values, n);
    values = widened.floats();
  }
  runtime.device.download(result.data(), values.data(), n * size_of(Dtype::fp32));
  return result;
}

void accumulate(Runtime& runtime, MicroStep micro_step, ConstValues reduced, Values kept, Index n) {
  if (n == 0 || reduced.data() == kept.data()) return;
  if (micro_step.first()) {
    runtime.device.copy(kept, reduced, n);
  } else {
    runtime.device.add(kept, reduced, n);
  }
}

}  // namespace zerolab
