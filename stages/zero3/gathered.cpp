#include "stages/zero3/gathered.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

#include "stages/base/scoped.hpp"
#include "stages/engine/states.hpp"
#include "stages/model/parameter_state.hpp"

namespace zerolab {
namespace {

std::string_view name_of(const Module* module) {
  return module == nullptr ? std::string_view{} : module->name();
}

}  // namespace

void Gathered::set_up(ParameterSet& parameters, const Pieces& layout, const PieceBuffer& pieces,
                      const Governor& governor) {
  parameters_ = &parameters;
  layout_ = &layout;
  pieces_ = &pieces;
  governor_ = &governor;
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

void Gathered::take_over(const Parameter& parameter) {
  const Range owned = layout_->of(parameter).owned(runtime_.rank());
  runtime_.device.copy(pieces_->of(parameter), parameter.data + owned.begin, owned.size());
}

void Gathered::let_all_go(const std::vector<bool>& persistent) {
  while (!in_flight_.empty()) wait(in_flight_.front().parameters, nullptr);
  for (Parameter& parameter : *parameters_) {
    if (parameter.status() != Status::available || parameter.active() > 0) continue;
    if (persistent[static_cast<std::size_t>(parameter.id())]) continue;
    release({&parameter}, Cause::release, nullptr);
  }
}

Index Gathered::bytes_of(const Parameter& parameter) const {
  return layout_->of(parameter).padded() * size_of(runtime_.settings.dtype);
}

// One all-gather straight into the parameters' buffers, each with the own piece in its place. The
// buffers come first: if there is no memory for all of them, nothing has happened.
void Gathered::gather(const std::vector<Parameter*>& parameters, Cause cause,
                      const Module* module) {
  const Dtype dtype = runtime_.settings.dtype;
  std::vector<Buffer> buffers;
  buffers.reserve(parameters.size());
  for (const Parameter* parameter : parameters) {
    const Scoped asking(asked_for_, std::optional<Index>(parameter->id()));
    buffers.push_back(runtime_.ledger.allocate(bytes_of(*parameter), Category::gather_buffers,
                                               parameter->name(), governor_));
  }
  InFlight flight{parameters, {}, {}};
  std::vector<Run> runs;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    Parameter& parameter = *parameters[i];
    const PieceLayout& pieces = layout_->of(parameter);
    const bool borrowed = cause == Cause::fetch && module->borrows(parameter);
    flight.causes.push_back(borrowed ? Cause::external : cause);
    ParameterState::move(parameter, Status::inflight, flight.causes.back(), name_of(module),
                         runtime_.recorder);
    const Values whole = buffers[i].values(dtype);
    runtime_.device.copy(whole + runtime_.rank() * pieces.piece_size(), pieces_->of(parameter),
                         pieces.piece_size());
    runs.push_back({whole, pieces.bounds()});
    bytes_ += buffers[i].bytes();
    whole_[parameter.id()] = std::move(buffers[i]);
  }
  flight.pending = all_gather(runtime_.comm, runs, names_of(parameters));
  if (!runtime_.settings.zero.overlap_comm) runtime_.comm.wait(flight.pending);
  in_flight_.push_back(std::move(flight));
}

void Gathered::wait(const std::vector<Parameter*>& parameters, const Module* module) {
  const auto found = std::find_if(in_flight_.begin(), in_flight_.end(), [&](const InFlight& each) {
    return each.parameters == parameters;
  });
  InFlight flight{parameters, std::vector<Cause>(parameters.size(), Cause::fetch), {}};
  if (found != in_flight_.end()) {
    flight = std::move(*found);
    in_flight_.erase(found);
  }
  runtime_.comm.wait(flight.pending);
  for (std::size_t i = 0; i < flight.parameters.size(); ++i) {
    Parameter& parameter = *flight.parameters[i];
    ParameterState::move(parameter, Status::available, flight.causes[i], name_of(module),
                         runtime_.recorder);
    parameter.data = whole_.at(parameter.id()).values(runtime_.settings.dtype);
  }
}

void Gathered::release(const std::vector<Parameter*>& parameters, Cause cause,
                       const Module* module) {
  for (Parameter* parameter : parameters) {
    ParameterState::move(*parameter, Status::not_available, cause, name_of(module),
                         runtime_.recorder);
    parameter->data = nullptr;
    whole_.erase(parameter->id());
    bytes_ -= bytes_of(*parameter);
  }
}

}  // namespace zerolab
