#include "visualize/verify/reference.hpp"

namespace zerolab::verify {
namespace {

using log::Cause;
using log::Count;
using log::GradientStatus;
using log::Status;

Count rounded_up(Count value, Count multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

template <typename Enum>
std::vector<Enum> all_of() {
  std::vector<Enum> result;
  for (std::size_t i = 0; i < log::kWords<Enum>.size(); ++i) {
    result.push_back(static_cast<Enum>(i));
  }
  return result;
}

}  // namespace

bool legal(Count stage, const log::Move& move) {
  const auto [from, to, cause] = move;
  switch (cause) {
    case Cause::set_up:  // stages 0 to 2 hold everything from the start
      return stage < 3 && from == Status::not_available && to == Status::available;
    case Cause::publish:  // stages 1 and 2 gather the updated slices
      return (stage == 1 || stage == 2) && ((from == Status::available && to == Status::inflight) ||
                                            (from == Status::inflight && to == Status::available));
    case Cause::fetch:
    case Cause::external:
    case Cause::prefetch:
    case Cause::persist:
    case Cause::gather_scope:
      return stage == 3 && ((from == Status::not_available && to == Status::inflight) ||
                            (from == Status::inflight && to == Status::available));
    case Cause::release:
    case Cause::step:
      return stage == 3 && from == Status::available && to == Status::not_available;
  }
  return false;
}

bool known(const log::Move& move) {
  for (Count stage = 0; stage <= 3; ++stage) {
    if (legal(stage, move)) return true;
  }
  return false;
}

bool legal(const log::GradientMove& move) {
  using enum GradientStatus;
  switch (move.to) {
    case none:
      return false;
    case partial:
      return move.from == none || move.from == reduced || move.from == freed;
    case ready:
      return move.from == partial;
    case reducing:
      return move.from == ready;
    case reduced:
      return move.from == reducing;
    case freed:
      return move.from == reduced;
  }
  return false;
}

std::vector<log::Move> legal_moves(Count stage) {
  std::vector<log::Move> result;
  for (const Status from : all_of<Status>()) {
    for (const Status to : all_of<Status>()) {
      for (const Cause cause : all_of<Cause>()) {
        if (legal(stage, log::Move{from, to, cause})) result.push_back({from, to, cause});
      }
    }
  }
  return result;
}

std::vector<log::GradientMove> legal_gradient_moves() {
  std::vector<log::GradientMove> result;
  for (const GradientStatus from : all_of<GradientStatus>()) {
    for (const GradientStatus to : all_of<GradientStatus>()) {
      if (legal(log::GradientMove{from, to})) result.push_back({from, to});
    }
  }
  return result;
}

Padding::Padding(const log::Run& run) : run_(run) {
  for (std::size_t i = 0; i < run.parameters.size(); ++i) {
    const log::Parameter& parameter = run.parameters[i];
    if (!parameter.trainable || parameter.numel == 0) continue;
    trainable_ += parameter.numel;
    last_ = i;
  }
  flat_ = rounded_up(trainable_, 2 * run.world_size);
}

Count Padding::elements(std::size_t parameter) const {
  const Count numel = run_.parameters[parameter].numel;
  if (run_.stage == 3) return rounded_up(numel, run_.world_size);
  return parameter == last_ && numel > 0 ? numel + flat_ - trainable_ : numel;
}

}  // namespace zerolab::verify
