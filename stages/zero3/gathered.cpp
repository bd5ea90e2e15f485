#include "stages/zero3/gathered.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

#include "stages/engine/states.hpp"
#include "stages/model/parameter_state.hpp"

namespace zerolab {
namespace {

std::string_view name_of(const Module* module) {
  return module == nullptr ? std::string_view{} : module->name();
}

}  // namespace

void Gathered::set_up(ParameterSet& parameters, const Pieces& layout, const PieceBuffer& pieces) {
  parameters_ = &parameters;
  layout_ = &layout;
  pieces_ = &pieces;
}

void Gathered::carry_out(const std::vector<Action>& actions, const Module* module) {
  for (const Action& action : actions) {
    std::vector<Parameter*> parameters;
    parameters.reserve(action.parameters.size());
    for (const Index id : action.parameters) {
      parameters.push_back(&(*parameters_)[static_cast<std::size_t>(id)]);
    }
    switch (action.kind) {
      case Action::Kind::gather:
        gather(parameters, action.cause, module);
        break;
      case Action::Kind::wait:
        wait(parameters, module);
        break;
      case Action::Kind::release:
        release(parameters, action.cause, module);
        break;
    }
  }
}

// One all-gather straight into the parameters' buffers, each with the own piece in its place.
void Gathered::gather(const std::vector<Parameter*>& parameters, Cause cause,
                      const Module* module) {
  InFlight flight{parameters, {}, {}};
  std::vector<Run> runs;
  for (Parameter* parameter : parameters) {
    const PieceLayout& pieces = layout_->of(*parameter);
    Buffer whole = runtime_.ledger.allocate(pieces.padded() * size_of(Dtype::fp32),
                                            Category::gather_buffers, parameter->name());
    const bool borrowed = cause == Cause::fetch && module->borrows(*parameter);
    flight.causes.push_back(borrowed ? Cause::external : cause);
    ParameterState::move(*parameter, Status::inflight, flight.causes.back(), name_of(module),
                         runtime_.recorder);
    runtime_.device.copy(whole.floats() + runtime_.rank() * pieces.piece_size(),
                         pieces_->of(*parameter), pieces.piece_size());
    runs.push_back({whole.floats(), pieces.bounds()});
    whole_[parameter->id()] = std::move(whole);
  }
  flight.pending = all_gather(runtime_.comm, runs, names_of(parameters));
  if (!runtime_.settings.zero.overlap_comm) runtime_.comm.wait(flight.pending);
  in_flight_.push_back(std::move(flight));
}

void Gathered::wait(const std::vector<Parameter*>& parameters, const Module* module) {
  const auto flight = std::find_if(in_flight_.begin(), in_flight_.end(), [&](const InFlight& each) {
    return each.parameters == parameters;
  });
  if (flight != in_flight_.end()) runtime_.comm.wait(flight->pending);
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    Parameter& parameter = *parameters[i];
    const Cause cause = flight == in_flight_.end() ? Cause::fetch : flight->causes[i];
    ParameterState::move(parameter, Status::available, cause, name_of(module), runtime_.recorder);
    parameter.data = whole_.at(parameter.id()).floats();
  }
  if (flight != in_flight_.end()) in_flight_.erase(flight);
}

void Gathered::release(const std::vector<Parameter*>& parameters, Cause cause,
                       const Module* module) {
  for (Parameter* parameter : parameters) {
    ParameterState::move(*parameter, Status::not_available, cause, name_of(module),
                         runtime_.recorder);
    parameter->data = nullptr;
    whole_.erase(parameter->id());
  }
}

}  // namespace zerolab
