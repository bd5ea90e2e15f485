#include "stages/engine/states.hpp"

#include <fmt/format.h>

#include <utility>

#include "stages/model/parameter_state.hpp"
#include "stages/optim/optimizer.hpp"

namespace zerolab {
namespace {

void start_whole(Runtime& runtime, Parameter& parameter, float* data) {
  parameter.data = data;
  initialise(runtime, parameter, {0, parameter.numel()}, data);
  ParameterState::move(parameter, Status::available, Cause::set_up, "", runtime.recorder);
}

}  // namespace

FlatBuffer::FlatBuffer(Runtime& runtime, Range range, Category category, std::string owner)
    : buffer_(
          runtime.ledger.allocate(range.size() * size_of(Dtype::fp32), category, std::move(owner))),
      range_(range) {
  runtime.device.fill(buffer_.floats(), range.size(), 0);
}

std::vector<FlatBuffer> flat_moments(Runtime& runtime, Range range) {
  std::vector<FlatBuffer> moments;
  for (int i = 1; i <= moments_needed(runtime.settings.optimizer); ++i) {
    moments.emplace_back(runtime, range, Category::optimizer, fmt::format("moment {}", i));
  }
  return moments;
}

std::vector<OwnedSlice> flat_slices(ParameterSet& parameters, const FlatLayout& layout, Range owned,
                                    const FlatBuffer& gradients, const FlatBuffer& masters,
                                    const std::vector<FlatBuffer>& moments) {
  std::vector<OwnedSlice> slices;
  for (Parameter& parameter : parameters) {
    const Range whole = layout.parameter(parameter.id());
    const Range part = intersect(whole, owned);
    if (part.size() == 0) continue;
    OwnedSlice slice{&parameter,
                     {part.begin - whole.begin, part.end - whole.begin},
                     gradients.at(part.begin),
                     masters.at(part.begin),
                     {}};
    for (std::size_t i = 0; i < moments.size(); ++i) slice.moments[i] = moments[i].at(part.begin);
    slices.push_back(slice);
  }
  return slices;
}

void FrozenParameters::set_up(Runtime& runtime, ParameterSet& parameters) {
  parameters_ = &parameters;
  const FlatLayout layout(parameters.frozen_sizes(), 1);
  if (layout.total() == 0) return;
  buffer_ = runtime.ledger.allocate(layout.total() * size_of(Dtype::fp32), Category::parameters,
                                    "frozen parameters");
  for (Parameter& parameter : parameters) {
    if (parameter.requires_grad()) continue;
    start_whole(runtime, parameter, buffer_.floats() + layout.parameter(parameter.id()).begin);
  }
}

std::vector<OwnedSlice> FrozenParameters::slices() const {
  std::vector<OwnedSlice> slices;
  for (Parameter& parameter : *parameters_) {
    if (parameter.requires_grad()) continue;
    slices.push_back({&parameter, {0, parameter.numel()}, nullptr, parameter.data, {}});
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

void initialise(Runtime& runtime, const Parameter& parameter, Range range, float* out) {
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

std::string names_of(const std::vector<Parameter*>& parameters) {
  if (parameters.empty()) return {};
  const std::string& first = parameters.front()->name();
  if (parameters.size() == 1) return first;
  return fmt::format("{} .. {} ({} parameters)", first, parameters.back()->name(),
                     parameters.size());
}

Buffer hold_gradient(Runtime& runtime, const Parameter& parameter, Index elements) {
  Buffer buffer = runtime.ledger.allocate(elements * size_of(Dtype::fp32), Category::reduce_buffers,
                                          parameter.name() + " (whole gradient)");
  runtime.device.fill(buffer.floats() + parameter.numel(), elements - parameter.numel(), 0);
  return buffer;
}

void accumulate(Runtime& runtime, MicroStep micro_step, const float* reduced, float* kept,
                Index n) {
  if (n == 0) return;
  if (micro_step.first()) {
    runtime.device.copy(kept, reduced, n);
  } else {
    runtime.device.add(kept, reduced, n);
  }
}

}  // namespace zerolab
