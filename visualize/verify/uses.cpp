#include "visualize/verify/uses.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace zerolab::verify {

using log::Cause;
using log::Status;
using log::VisitKind;

Uses::Uses(const Catalogue& catalogue, const Reporter& report, const States& states)
    : catalogue_(catalogue),
      report_(report),
      states_(states),
      late_(catalogue.run().modules.size()) {}

void Uses::see(const log::Event& event, const log::ParamEvent& move) {
  const bool for_a_module =
      move.cause == Cause::fetch || move.cause == Cause::external || move.cause == Cause::prefetch;
  if (move.to == Status::inflight && for_a_module) pass_begins();
  if (move.to != Status::available || move.cause != Cause::external) return;
  const auto module = catalogue_.module(move.module);
  const auto parameter = catalogue_.parameter(move.parameter);
  if (!module || !parameter) return;
  const std::vector<std::size_t>& known = catalogue_.reads(*module);
  if (std::find(known.begin(), known.end(), *parameter) != known.end()) return;
  late_[*module].try_emplace(*parameter, event.t);
}

void Uses::see(const log::Event& event, const log::SpanEvent& span) {
  pass_begins();
  const auto module = catalogue_.module(span.module);
  if (!module) {
    report_(Kind::unknown_name, event.line,
            fmt::format("run.json has no module {}", in_quotes(span.module)));
    return;
  }
  if (span.start > span.end || span.end > event.t) {
    report_(Kind::going_back, event.line,
            fmt::format("{} of {} begins at {} us and ends at {} us, told at {} us",
                        name_of(span.kind), in_quotes(span.module), span.start, span.end, event.t));
  }
  for (const std::size_t parameter : catalogue_.reads(*module)) {
    check_read(event, span, parameter, span.start);
  }
  for (const auto& [parameter, since] : late_[*module]) {
    check_read(event, span, parameter, std::max(span.start, since));
  }
  // Whatever runs, runs inside of the model itself.
  const bool last = span.kind == VisitKind::backward || span.kind == VisitKind::evaluate;
  if (*module == 0 && last) pass_is_over_ = true;
}

// A span is told when the module has run, before anything is released.
void Uses::check_read(const log::Event& event, const log::SpanEvent& span, std::size_t parameter,
                      double from) const {
  const State& state = states_[parameter];
  const bool whole = state.status == Status::available;
  if (whole && state.whole_since <= from) return;
  const bool was_whole = !whole && state.whole_since <= from && state.whole_until > from;
  const std::string now =
      fmt::format("{} {}", name_of(state.status),
                  state.line > 0 ? fmt::format("since line {}", state.line) : "from the start");
  if (was_whole) {
    report_(Kind::release_while_in_use, event.line,
            fmt::format("{} of {} reads {} until {} us, but it is {}, {} us", name_of(span.kind),
                        in_quotes(span.module), in_quotes(catalogue_[parameter].name), span.end,
                        now, state.whole_until));
  } else {
    report_(Kind::use_while_not_available, event.line,
            fmt::format("{} of {} reads {} from {} us, but it is {}{}", name_of(span.kind),
                        in_quotes(span.module), in_quotes(catalogue_[parameter].name), from, now,
                        whole ? fmt::format(", {} us", state.whole_since) : ""));
  }
}

bool Uses::rests(std::size_t parameter, bool scopes_allowed) const {
  const State& state = states_[parameter];
  if (catalogue_.run().stage < 3) return state.status != Status::inflight;
  if (state.status == Status::not_available) return true;
  if (state.status == Status::inflight) return false;
  return catalogue_[parameter].persistent || (scopes_allowed && state.cause == Cause::gather_scope);
}

void Uses::pass_begins() {
  if (!pass_is_over_) return;
  pass_is_over_ = false;
  check_released("when the next pass begins");
}

void Uses::check_released(const char* when) const {
  for (std::size_t i = 0; i < catalogue_.run().parameters.size(); ++i) {
    if (rests(i, true)) continue;
    report_(Kind::gather_without_release, states_[i].line,
            fmt::format("{} is {} by {} here, and still is {}", in_quotes(catalogue_[i].name),
                        name_of(states_[i].status), name_of(states_[i].cause), when));
  }
}

void Uses::see(const log::Event& event, const log::StepEvent& /*step*/) {
  pass_is_over_ = false;
  for (std::size_t i = 0; i < catalogue_.run().parameters.size(); ++i) {
    if (rests(i, false)) continue;
    report_(Kind::step_ends_gathered, event.line,
            fmt::format("step {} ends with {} {} by {} since line {}", event.step,
                        in_quotes(catalogue_[i].name), name_of(states_[i].status),
                        name_of(states_[i].cause), states_[i].line));
  }
}

void Uses::end() { check_released("at the end of the log"); }

}  // namespace zerolab::verify
