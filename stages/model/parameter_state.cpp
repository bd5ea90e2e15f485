#include "stages/model/parameter_state.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "stages/base/error.hpp"

namespace zerolab {
namespace {

constexpr std::array kMoves{
    // stages 0 to 2 hold every parameter whole from the start
    Move{Status::not_available, Status::available, Cause::set_up},
    // stage 3: an all-gather before a module runs...
    Move{Status::not_available, Status::inflight, Cause::fetch},
    Move{Status::inflight, Status::available, Cause::fetch},
    Move{Status::not_available, Status::inflight, Cause::external},
    Move{Status::inflight, Status::available, Cause::external},
    // ... or earlier; the module that needs it waits
    Move{Status::not_available, Status::inflight, Cause::prefetch},
    Move{Status::inflight, Status::available, Cause::prefetch},
    // ... or for a scope outside of the model
    Move{Status::not_available, Status::inflight, Cause::gather_scope},
    Move{Status::inflight, Status::available, Cause::gather_scope},
    // ... and letting go, after the module or once it is no longer the weight
    Move{Status::available, Status::not_available, Cause::release},
    Move{Status::available, Status::not_available, Cause::step},
    // what persists is gathered again after the update
    Move{Status::not_available, Status::inflight, Cause::persist},
    Move{Status::inflight, Status::available, Cause::persist},
    // stages 1 and 2: after the update each rank's slice goes to everybody
    Move{Status::available, Status::inflight, Cause::publish},
    Move{Status::inflight, Status::available, Cause::publish},
};

using enum GradientStatus;
constexpr std::array kGradientMoves{
    GradientMove{none, partial},  GradientMove{reduced, partial}, GradientMove{freed, partial},
    GradientMove{partial, ready}, GradientMove{ready, reducing},  GradientMove{reducing, reduced},
    GradientMove{reduced, freed},
};

/// What kind of mistake a move is that the table does not have, and what mends it.
struct Mistake {
  Code code;
  std::string_view way_out;
};
Mistake mistake_of(Status from, Status to, Cause cause) {
  if (to == Status::not_available && from == Status::inflight) {
    return {Code::released_in_flight, "wait for its all-gather before it is released"};
  }
  if (to == Status::inflight && from != Status::not_available && cause != Cause::publish) {
    return {Code::fetched_twice, "gather what is NOT_AVAILABLE only, and release it in between"};
  }
  if (to == Status::available && from != Status::inflight && cause != Cause::set_up) {
    return {Code::waited_without_gather, "start its all-gather before waiting for it"};
  }
  return {Code::illegal_move, "the legal moves are listed under state_machine in run.json"};
}

}  // namespace

std::string_view name_of(Status status) {
  switch (status) {
    case Status::not_available:
      return "NOT_AVAILABLE";
    case Status::inflight:
      return "INFLIGHT";
    case Status::available:
      return "AVAILABLE";
  }
  return "?";
}

std::string_view name_of(Cause cause) {
  switch (cause) {
    case Cause::set_up:
      return "set_up";
    case Cause::fetch:
      return "fetch";
    case Cause::external:
      return "external";
    case Cause::prefetch:
      return "prefetch";
    case Cause::persist:
      return "persist";
    case Cause::release:
      return "release";
    case Cause::step:
      return "step";
    case Cause::gather_scope:
      return "gather_scope";
    case Cause::publish:
      return "publish";
  }
  return "?";
}

std::string_view name_of(GradientStatus status) {
  switch (status) {
    case GradientStatus::none:
      return "none";
    case GradientStatus::partial:
      return "partial";
    case GradientStatus::ready:
      return "ready";
    case GradientStatus::reducing:
      return "reducing";
    case GradientStatus::reduced:
      return "reduced";
    case GradientStatus::freed:
      return "freed";
  }
  return "?";
}

std::span<const Move> legal_moves() { return kMoves; }
std::span<const GradientMove> legal_gradient_moves() { return kGradientMoves; }

void ParameterState::move(Parameter& parameter, Status to, Cause cause, std::string_view module,
                          Recorder& recorder) {
  const Status from = parameter.status_;
  const bool legal = std::any_of(kMoves.begin(), kMoves.end(), [&](const Move& m) {
    return m.from == from && m.to == to && m.cause == cause;
  });
  if (!legal) {
    const Mistake mistake = mistake_of(from, to, cause);
    throw Error(mistake.code,
                fmt::format("parameter '{}' on rank {} cannot go from {} to {} by {} (module '{}')",
                            parameter.name(), recorder.rank(), name_of(from), name_of(to),
                            name_of(cause), module),
                std::string(mistake.way_out));
  }
  if (to == Status::not_available && parameter.active_ > 0) {
    throw Error(Code::released_while_active,
                fmt::format("cannot free parameter '{}' on rank {} after module '{}': {} running "
                            "module(s) still read it",
                            parameter.name(), recorder.rank(), module, parameter.active_),
                "release it after the last module that reads it has run");
  }
  parameter.status_ = to;
  recorder.record(ParamEvent{parameter.name(), name_of(from), name_of(to), name_of(cause), module,
                             parameter.active_});
}

void ParameterState::begin_use(Parameter& parameter) { ++parameter.active_; }

void ParameterState::end_use(Parameter& parameter, std::string_view module,
                             const Recorder& recorder) {
  if (parameter.active_ == 0) {
    throw Error(Code::use_count,
                fmt::format("module '{}' on rank {} ends its use of parameter '{}', which no "
                            "running module reads",
                            module, recorder.rank(), parameter.name()),
                "every module that ends must have begun: run it through forward() and backward()");
  }
  --parameter.active_;
}

void ParameterState::begin_scope(Parameter& parameter, const Recorder& recorder) {
  if (parameter.in_scope_) {
    throw Error(Code::held_by_scope,
                fmt::format("parameter '{}' on rank {} is gathered by a scope inside another one "
                            "that holds it",
                            parameter.name(), recorder.rank()),
                "leave it out of the inner scope: it is whole there");
  }
  parameter.in_scope_ = true;
  begin_use(parameter);
}

void ParameterState::end_scope(Parameter& parameter, const Recorder& recorder) {
  parameter.in_scope_ = false;
  end_use(parameter, "gather scope", recorder);
}

void ParameterState::move_gradient(Parameter& parameter, GradientStatus to, Recorder& recorder) {
  const GradientStatus from = parameter.gradient_status_;
  const bool legal =
      std::any_of(kGradientMoves.begin(), kGradientMoves.end(),
                  [&](const GradientMove& m) { return m.from == from && m.to == to; });
  if (!legal) {
    throw Error(Code::gradient_state,
                fmt::format("the gradient of '{}' on rank {} cannot go from {} to {}",
                            parameter.name(), recorder.rank(), name_of(from), name_of(to)),
                to == GradientStatus::partial
                    ? "it was handed over before its last use gave its part: run backward once for "
                      "every forward"
                    : "a gradient is reduced once, after all of its uses are in");
  }
  parameter.gradient_status_ = to;
  recorder.record(GradEvent{parameter.name(), name_of(from), name_of(to)});
}

}  // namespace zerolab
