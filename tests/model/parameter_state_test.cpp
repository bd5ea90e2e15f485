#include "stages/model/parameter_state.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <variant>

#include "tests/support/catch.hpp"
#include "tests/support/thrown.hpp"

namespace zerolab {
namespace {

using enum Status;
using enum GradientStatus;

// Written down a second time, so that a move added to the table by mistake is noticed.
constexpr std::array kExpected{
    Move{not_available, available, Cause::set_up},
    Move{not_available, inflight, Cause::fetch},
    Move{inflight, available, Cause::fetch},
    Move{not_available, inflight, Cause::external},
    Move{inflight, available, Cause::external},
    Move{not_available, inflight, Cause::prefetch},
    Move{inflight, available, Cause::prefetch},
    Move{not_available, inflight, Cause::persist},
    Move{inflight, available, Cause::persist},
    Move{available, not_available, Cause::release},
    Move{available, not_available, Cause::step},
    Move{available, inflight, Cause::publish},
    Move{inflight, available, Cause::publish},
    Move{not_available, inflight, Cause::gather_scope},
    Move{inflight, available, Cause::gather_scope},
};
constexpr std::array kExpectedGradient{
    GradientMove{none, partial},  GradientMove{reduced, partial}, GradientMove{freed, partial},
    GradientMove{partial, ready}, GradientMove{ready, reducing},  GradientMove{reducing, reduced},
    GradientMove{reduced, freed},
};
constexpr std::array kStatuses{not_available, inflight, available};
constexpr std::array kCauses{Cause::set_up,   Cause::fetch,        Cause::external,
                             Cause::prefetch, Cause::persist,      Cause::release,
                             Cause::step,     Cause::gather_scope, Cause::publish};

/// The code of a move that is not declared.
Code code_of(Status from, Status to, Cause cause) {
  if (from == inflight && to == not_available) return Code::released_in_flight;
  if (from != not_available && to == inflight && cause != Cause::publish) {
    return Code::fetched_twice;
  }
  if (from != inflight && to == available && cause != Cause::set_up) {
    return Code::waited_without_gather;
  }
  return Code::illegal_move;
}
constexpr std::array kGradientStatuses{none, partial, ready, reducing, reduced, freed};

bool expected(Status from, Status to, Cause cause) {
  return std::any_of(kExpected.begin(), kExpected.end(), [&](const Move& move) {
    return move.from == from && move.to == to && move.cause == cause;
  });
}

bool expected(GradientStatus from, GradientStatus to) {
  return std::any_of(kExpectedGradient.begin(), kExpectedGradient.end(),
                     [&](const GradientMove& m) { return m.from == from && m.to == to; });
}

/// A parameter on rank 3 and how many events its moves have recorded.
struct Bench {
  Parameter parameter{"norm.bias", 5, {7}, Initial::zeros()};
  Recorder recorder{3};
  int events = 0;
  std::string latest;  // the latest event's fields, as they must be copied at once

  Bench() {
    recorder.observe([this](const Stamp&, const Event& event) {
      ++events;
      if (const auto* param = std::get_if<ParamEvent>(&event)) {
        latest = fmt::format("{} {}->{} {} {} {}", param->parameter, param->from, param->to,
                             param->cause, param->module, param->active);
      } else if (const auto* grad = std::get_if<GradEvent>(&event)) {
        latest = fmt::format("{} {}->{}", grad->parameter, grad->from, grad->to);
      }
    });
  }

  void move(Status to, Cause cause) {
    ParameterState::move(parameter, to, cause, "norm", recorder);
  }
  void move(GradientStatus to) { ParameterState::move_gradient(parameter, to, recorder); }

  void bring_to(Status status) {
    if (status == available) move(available, Cause::set_up);
    if (status == inflight) move(inflight, Cause::fetch);
    REQUIRE(parameter.status() == status);
    events = 0;
  }
  void bring_to(GradientStatus status) {
    for (const GradientStatus next : {partial, ready, reducing, reduced, freed}) {
      if (parameter.gradient_status() == status) break;
      move(next);
    }
    REQUIRE(parameter.gradient_status() == status);
    events = 0;
  }
};

TEST_CASE("a parameter makes the declared moves, each recorded once, and no other", "[model]") {
  CHECK(legal_moves().size() == kExpected.size());
  for (const Status from : kStatuses) {
    for (const Status to : kStatuses) {
      for (const Cause cause : kCauses) {
        Bench bench;
        bench.bring_to(from);
        INFO(name_of(from) << " to " << name_of(to) << " by " << name_of(cause));
        const auto error = thrown_by([&] { bench.move(to, cause); });
        CHECK(error.has_value() != expected(from, to, cause));
        CHECK(bench.parameter.status() == (error ? from : to));
        CHECK(bench.events == (error ? 0 : 1));
        if (error) {
          CHECK(error->code() == code_of(from, to, cause));
          CHECK(contains(error->what(),
                         fmt::format("'norm.bias' on rank 3 cannot go from {} to {} by {} (module "
                                     "'norm')",
                                     name_of(from), name_of(to), name_of(cause))));
        } else {
          CHECK(bench.latest == fmt::format("norm.bias {}->{} {} norm 0", name_of(from),
                                            name_of(to), name_of(cause)));
        }
      }
    }
  }
}

TEST_CASE("a parameter that a running module reads is not released", "[model]") {
  Bench bench;
  bench.bring_to(available);
  ParameterState::begin_use(bench.parameter);
  ParameterState::begin_use(bench.parameter);
  const auto error = thrown_by([&] { bench.move(not_available, Cause::release); });
  REQUIRE(error);
  CHECK(error->code() == Code::released_while_active);
  CHECK(contains(error->what(), "'norm.bias' on rank 3 after module 'norm': 2 running"));
  CHECK(bench.parameter.status() == available);
  CHECK(bench.events == 0);

  ParameterState::end_use(bench.parameter, "norm", bench.recorder);
  ParameterState::end_use(bench.parameter, "norm", bench.recorder);
  bench.move(not_available, Cause::release);
  CHECK(bench.parameter.status() == not_available);
}

TEST_CASE("a module ends its use of a parameter as often as it began it, and no more", "[model]") {
  Bench bench;
  ParameterState::begin_use(bench.parameter);
  ParameterState::end_use(bench.parameter, "norm", bench.recorder);
  const auto error =
      thrown_by([&] { ParameterState::end_use(bench.parameter, "norm", bench.recorder); });
  REQUIRE(error);
  CHECK(error->code() == Code::use_count);
  CHECK(contains(error->what(), "module 'norm' on rank 3 ends its use of parameter 'norm.bias'"));
  CHECK(bench.parameter.active() == 0);
}

TEST_CASE("a gradient makes the declared moves, each recorded once, and no other", "[model]") {
  CHECK(legal_gradient_moves().size() == kExpectedGradient.size());
  for (const GradientStatus from : kGradientStatuses) {
    for (const GradientStatus to : kGradientStatuses) {
      Bench bench;
      bench.bring_to(from);
      INFO(name_of(from) << " to " << name_of(to));
      const auto error = thrown_by([&] { bench.move(to); });
      CHECK(error.has_value() != expected(from, to));
      CHECK(bench.parameter.gradient_status() == (error ? from : to));
      CHECK(bench.events == (error ? 0 : 1));
      if (error) {
        CHECK(error->code() == Code::gradient_state);
        CHECK(contains(error->what(), fmt::format("'norm.bias' on rank 3 cannot go from {} to {}",
                                                  name_of(from), name_of(to))));
      } else {
        CHECK(bench.latest == fmt::format("norm.bias {}->{}", name_of(from), name_of(to)));
      }
    }
  }
}

}  // namespace
}  // namespace zerolab
