#pragma once

#include <span>
#include <string_view>

#include "stages/model/parameter.hpp"
#include "stages/trace/recorder.hpp"

namespace zerolab {

/// A legal move of a parameter.
struct Move {
  Status from;
  Status to;
  Cause cause;
};

/// The declared state machine: every move that any stage may make. run.json carries it.
std::span<const Move> legal_moves();

struct GradientMove {
  GradientStatus from;
  GradientStatus to;
};
std::span<const GradientMove> legal_gradient_moves();

/// The only writer of statuses. Each call checks the move against the table and records the event.
struct ParameterState {
  /// `module` is the module on whose behalf it moves, or empty. Throws Error:
  /// Code::released_while_active, Code::released_in_flight, Code::fetched_twice,
  /// Code::waited_without_gather, or Code::illegal_move for what else the table does not have.
  static void move(Parameter& parameter, Status to, Cause cause, std::string_view module,
                   Recorder& recorder);

  /// A module that reads the parameter begins, or has ended. While one runs, the parameter is not
  /// released. Throws Error (Code::use_count) when more end than began.
  static void begin_use(Parameter& parameter);
  static void end_use(Parameter& parameter, std::string_view module, const Recorder& recorder);

  /// A scope begins or ends that holds the parameter whole, as a running module does. Throws Error
  /// (Code::held_by_scope) when there is one already.
  static void begin_scope(Parameter& parameter, const Recorder& recorder);
  static void end_scope(Parameter& parameter, const Recorder& recorder);

  /// Throws Error (Code::gradient_state).
  static void move_gradient(Parameter& parameter, GradientStatus to, Recorder& recorder);
};

}  // namespace zerolab
