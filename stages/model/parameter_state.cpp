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
    // stage 3: an all-gather before a module runs, and letting go after it
    Move{Status::not_available, Status::inflight, Cause::fetch},
    Move{Status::inflight, Status::available, Cause::fetch},
    Move{Status::available, Status::not_available, Cause::release},
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
    case Cause::release:
      return "release";
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
    throw Error(Code::illegal_move,
                fmt::format("parameter '{}' on rank {} cannot go from {} to {} by {} (module '{}')",
                            parameter.name(), recorder.rank(), name_of(from), name_of(to),
                            name_of(cause), module),
                "the legal moves are listed under state_machine in run.json");
  }
  if (to == Status::not_available && parameter.active > 0) {
    throw Error(Code::released_while_active,
                fmt::format("cannot free parameter '{}' on rank {} after module '{}': {} running "
                            "module(s) still read it",
                            parameter.name(), recorder.rank(), module, parameter.active),
                "release it after the last module that reads it has run");
  }
  parameter.status_ = to;
  recorder.record(ParamEvent{parameter.name(), name_of(from), name_of(to), name_of(cause), module,
                             parameter.active});
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
