#include "stages/engine/micro_step_gradients.hpp"

#include <utility>

namespace zerolab {

Values HeldGradients::hold(const Parameter& parameter, Index elements) {
  const Dtype dtype = runtime_.settings.dtype;
  Held& held = held_[parameter.id()];
  held.elements = elements;
  held.buffer = runtime_.ledger.allocate(elements * size_of(dtype), Category::reduce_buffers,
                                         parameter.name() + " (whole gradient)");
  const Values values = held.buffer.values(dtype);
  runtime_.device.fill(values + parameter.numel(), elements - parameter.numel(), 0);
  return values;
}

ReadyGradient HeldGradients::take(Parameter& parameter, MicroStep micro_step) {
  Held held = std::move(held_.extract(parameter.id()).mapped());
  return {.parameter = &parameter,
          .data = held.buffer.values(runtime_.settings.dtype),
          .elements = held.elements,
          .micro_step = micro_step,
          .whole = std::move(held.buffer)};
}

void LocalSums::set_up(const FlatLayout& layout, const FlatBuffer& sums) {
  layout_ = &layout;
  sums_ = &sums;
}

// The first micro-step may write where the sum stays; later ones are finished beside it.
bool LocalSums::in_place(MicroStep micro_step) const {
  return micro_step.first() && !reduces_each() &&
         runtime_.settings.accumulation_dtype() == runtime_.settings.dtype;
}

Values LocalSums::buffer(const Parameter& parameter, MicroStep micro_step) {
  const Range range = layout_->padded_parameter(parameter.id());
  if (in_place(micro_step)) return sums_->at(range.begin);
  return held_.hold(parameter, reduces_each() ? range.size() : parameter.numel());
}

std::optional<ReadyGradient> LocalSums::ready(Parameter& parameter, MicroStep micro_step) {
  if (reduces_each()) return held_.take(parameter, micro_step);
  const Range range = layout_->padded_parameter(parameter.id());
  const Values sum = sums_->at(range.begin);
  if (!in_place(micro_step)) {
    const ReadyGradient held = held_.take(parameter, micro_step);
    accumulate(runtime_, micro_step, held.data, sum, held.elements);
  }
  if (!micro_step.last()) return std::nullopt;
  // Of no micro-step: what comes back is the mean, and replaces the sum.
  return ReadyGradient{.parameter = &parameter, .data = sum, .elements = range.size()};
}

}  // namespace zerolab
