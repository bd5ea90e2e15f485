#include "visualize/verify/states.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace zerolab::verify {

using log::Cause;
using log::Status;

States::States(const Catalogue& catalogue, const Reporter& report)
    : catalogue_(catalogue),
      report_(report),
      gathers_(catalogue, report, {Kind::gather_without_collective, Kind::available_too_early}),
      states_(catalogue.run().parameters.size()) {}

void States::see(const log::Event& event, const log::ParamEvent& move) {
  if (!move.module.empty() && !catalogue_.module(move.module)) {
    report_(Kind::unknown_name, event.line,
            fmt::format("run.json has no module {}", in_quotes(move.module)));
  }
  const auto parameter = catalogue_.parameter(move.parameter);
  if (!parameter) {
    report_(Kind::unknown_name, event.line,
            fmt::format("run.json has no parameter {}", in_quotes(move.parameter)));
    return;
  }
  State& state = states_[*parameter];
  const std::string says = fmt::format("{} goes from {} to {} by {}", in_quotes(move.parameter),
                                       name_of(move.from), name_of(move.to), name_of(move.cause));
  if (state.status != move.from) {
    report_(Kind::missing_transition, event.line,
            fmt::format("{}, but it is {}{}", says, name_of(state.status),
                        state.line > 0 ? fmt::format(" since line {}", state.line) : ""));
  }
  if (const std::string why = why_illegal(*parameter, move); !why.empty()) {
    report_(Kind::illegal_transition, event.line, fmt::format("{}; {}", says, why));
  }
  if (move.to == Status::not_available && move.active > 0) {
    report_(Kind::release_while_active, event.line,
            fmt::format("{} is released while {} running module(s) read it",
                        in_quotes(move.parameter), move.active));
  }
  if (move.to == Status::inflight) gathers_.begin(*parameter);
  if (move.to == Status::available && move.cause != Cause::set_up) gathers_.end(event, *parameter);
  if (move.to == Status::available) state.whole_since = event.t;
  if (move.from == Status::available) state.whole_until = event.t;
  state.status = move.to;
  state.cause = move.cause;
  state.line = event.line;
}

std::string States::why_illegal(std::size_t parameter, const log::ParamEvent& move) const {
  const Count stage = catalogue_.run().stage;
  if (!legal(stage, {move.from, move.to, move.cause})) {
    return fmt::format("no parameter moves so in stage {}", stage);
  }
  const bool for_good = move.cause == Cause::persist || move.cause == Cause::step;
  if (for_good && !catalogue_[parameter].persistent) {
    return "that is for parameters that persist, and run.json does not say that it does";
  }
  const State& state = states_[parameter];
  const bool arrives = move.from == Status::inflight && state.status == Status::inflight;
  if (arrives && state.cause != move.cause) {
    return fmt::format("it was sent for by {} in line {}", name_of(state.cause), state.line);
  }
  return {};
}

void States::see(const log::Event& event, const log::CommEvent& comm) {
  if (comm.op != log::Op::all_gather) return;
  if (catalogue_.run().stage < 3 && comm.owner == "parameters") {  // the updated slices
    gathers_.moved_all(event, comm);
  } else {
    gathers_.moved(event, comm);
  }
}

}  // namespace zerolab::verify
