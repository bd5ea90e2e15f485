#include "visualize/verify/gradients.hpp"

#include <fmt/format.h>

namespace zerolab::verify {

using log::GradientStatus;

Gradients::Gradients(const Catalogue& catalogue, const Reporter& report)
    : catalogue_(catalogue),
      report_(report),
      reductions_(catalogue, report, {Kind::reduced_without_collective, Kind::reduced_too_early}),
      gradients_(catalogue.run().parameters.size()) {}

void Gradients::see(const log::Event& event, const log::GradEvent& move) {
  const auto parameter = catalogue_.parameter(move.parameter);
  if (!parameter) {
    report_(Kind::unknown_name, event.line,
            fmt::format("run.json has no parameter {}", in_quotes(move.parameter)));
    return;
  }
  Gradient& gradient = gradients_[*parameter];
  const std::string says =
      fmt::format("the gradient of {} goes from {} to {}", in_quotes(move.parameter),
                  name_of(move.from), name_of(move.to));
  if (gradient.status != move.from) {
    report_(Kind::missing_gradient_transition, event.line,
            fmt::format("{}, but it is {}{}", says, name_of(gradient.status),
                        gradient.line > 0 ? fmt::format(" since line {}", gradient.line) : ""));
  }
  if (!catalogue_[*parameter].trainable) {
    report_(Kind::illegal_gradient_transition, event.line,
            fmt::format("{}; the parameter is frozen, so it has none", says));
  } else if (!legal({move.from, move.to})) {
    report_(Kind::illegal_gradient_transition, event.line,
            fmt::format("{}; no gradient moves so", says));
  }
  if (move.to == GradientStatus::reducing) reductions_.begin(*parameter);
  if (move.to == GradientStatus::reduced) {
    reductions_.end(event, *parameter);
    ++gradient.reduced;
  }
  gradient.status = move.to;
  gradient.line = event.line;
}

void Gradients::see(const log::Event& event, const log::CommEvent& comm) {
  if (comm.op != log::Op::reduce_scatter && comm.op != log::Op::all_reduce) return;
  reductions_.moved(event, comm);
}

void Gradients::see(const log::Event& event, const log::StepEvent& /*step*/) {
  for (std::size_t i = 0; i < gradients_.size(); ++i) {
    Gradient& gradient = gradients_[i];
    const bool at_rest =
        gradient.status == GradientStatus::reduced || gradient.status == GradientStatus::freed;
    if (catalogue_[i].trainable && (gradient.reduced == 0 || !at_rest)) {
      report_(
          Kind::not_reduced, event.line,
          fmt::format("step {} ends, and the gradient of {} is {}, {} in it", event.step,
                      in_quotes(catalogue_[i].name), name_of(gradient.status),
                      gradient.reduced == 0 ? std::string("never reduced")
                                            : fmt::format("reduced {} time(s)", gradient.reduced)));
    }
    gradient.reduced = 0;
  }
}

}  // namespace zerolab::verify
