#include "stages/engine/publish.hpp"

#include "stages/model/parameter_state.hpp"

namespace zerolab {
namespace {

void move_all(Runtime& runtime, ParameterSet& parameters, Status to) {
  for (Parameter& parameter : parameters) {
    if (!parameter.requires_grad()) continue;
    ParameterState::move(parameter, to, Cause::publish, "", runtime.recorder);
  }
}

}  // namespace

void publish_slices(Runtime& runtime, ParameterSet& parameters, const FlatLayout& layout,
                    const FlatBuffer& buffer) {
  move_all(runtime, parameters, Status::inflight);
  Pending gather = all_gather(
      runtime.comm, {{buffer.at(0), layout.slice_bounds({0, layout.padded()})}}, "parameters");
  runtime.comm.wait(gather);
  move_all(runtime, parameters, Status::available);
}

}  // namespace zerolab
