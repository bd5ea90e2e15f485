#include "stages/zero3/coordinator.hpp"

#include <algorithm>
#include <utility>

namespace zerolab {
namespace {

bool contains(const std::vector<Index>& list, Index value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

void carry_out(const Decision& decision, std::optional<Index> asked_for, Coordinator::Live& live) {
  for (const Action& action : decision.actions) {
    if (action.kind == Action::Kind::wait) continue;
    const bool gathers = action.kind == Action::Kind::gather;
    for (const Index parameter : action.parameters) {
      live[static_cast<std::size_t>(parameter)] = gathers;
      if (gathers && parameter == asked_for) return;
    }
  }
}

}  // namespace

Coordinator::Coordinator(std::vector<Index> elements, std::vector<bool> persistent,
                         FetchLimits limits)
    : limits_(limits) {
  for (std::size_t i = 0; i < elements.size(); ++i) {
    parameters_.push_back({.elements = elements[i], .persistent = persistent[i]});
  }
}

Decision Coordinator::before(const Stop& stop) {
  remember({.kind = Happening::Kind::before, .stop = stop});
  Decision decision;
  follow(stop, decision);
  std::vector<Index> missing = take(stop.reads);
  counts_.misses += static_cast<Index>(missing.size());
  gather(decision, std::move(missing), Cause::fetch);
  if (follows()) prefetch(decision);
  wait_for(decision, stop.reads);
  return decision;
}

Decision Coordinator::also_reads(const Stop& stop, Index parameter) {
  remember({.kind = Happening::Kind::also_reads, .stop = stop, .parameter = parameter});
  std::vector<Stop>& stops = trace().stops;
  for (std::size_t at = position_; at-- > 0;) {
    if (stops[at].module != stop.module || stops[at].kind != stop.kind) continue;
    stops[at].reads = stop.reads;
    break;
  }
  Decision decision;
  std::vector<Index> missing = take({parameter});
  counts_.misses += static_cast<Index>(missing.size());
  gather(decision, std::move(missing), Cause::fetch);
  wait_for(decision, {parameter});
  return decision;
}

Decision Coordinator::after(const Stop& stop) {
  remember({.kind = Happening::Kind::after, .stop = stop});
  return give_back(stop.reads);
}

Decision Coordinator::open_scope(const std::vector<Index>& parameters) {
  remember({.kind = Happening::Kind::open_scope, .stop = {.reads = parameters}});
  Decision decision;
  gather(decision, take(parameters), Cause::gather_scope);
  wait_for(decision, parameters);
  return decision;
}

Decision Coordinator::close_scope(const std::vector<Index>& parameters) {
  remember({.kind = Happening::Kind::close_scope, .stop = {.reads = parameters}});
  return give_back(parameters);
}

Decision Coordinator::end_pass(bool completed) {
  Decision decision;
  if (!in_pass_) return decision;
  if (completed && follows() && position_ < trace().stops.size()) {
    forget_rest(decision, std::nullopt);
  }
  let_go_unless(decision, {});
  just_recorded_ = completed && !trace().complete;
  if (just_recorded_) trace().complete = true;
  if (!completed && !trace().complete) trace().stops.clear();
  in_pass_ = false;
  return decision;
}

Decision Coordinator::publish(const std::vector<bool>& updated) {
  remember({.kind = Happening::Kind::publish, .updated = updated});
  Decision decision;
  std::vector<Index> stale;
  std::vector<Index> persistent;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    if (!updated[i]) continue;
    parameters_[i].gathered = true;
    if (!parameters_[i].persistent) continue;
    persistent.push_back(static_cast<Index>(i));
    if (parameters_[i].where == Where::whole) stale.push_back(static_cast<Index>(i));
  }
  let_go(decision, std::move(stale), Cause::step);
  gather(decision, persistent, Cause::persist);
  wait_for(decision, persistent);
  return decision;
}

void Coordinator::decide_again(const FetchLimits& limits, const std::vector<bool>& persistent,
                               std::optional<Index> asked_for,
                               const std::function<void(const Live& live)>& look) const {
  Coordinator other = at_rest(limits, persistent);
  Live live;
  for (const Knowledge& now : other.parameters_) live.push_back(now.where != Where::away);
  look(live);
  for (const auto& happening : history_) {
    carry_out(other.repeat(*happening), happening == history_.back() ? asked_for : std::nullopt,
              live);
    look(live);
  }
}

// Everything that happens in a pass is needed to decide it over again; between passes every event
// starts from a state of rest.
void Coordinator::remember(Happening happening) {
  if (!in_pass_) {
    history_.clear();
    for (Knowledge& now : parameters_) {
      now.gathered_at_rest = now.gathered;
      now.active_at_rest = now.active;
    }
  }
  history_.push_back(std::make_shared<const Happening>(std::move(happening)));
}

Decision Coordinator::repeat(const Happening& happening) {
  switch (happening.kind) {
    case Happening::Kind::before:
      return before(happening.stop);
    case Happening::Kind::also_reads:
      return also_reads(happening.stop, happening.parameter);
    case Happening::Kind::after:
      return after(happening.stop);
    case Happening::Kind::open_scope:
      return open_scope(happening.stop.reads);
    case Happening::Kind::close_scope:
      return close_scope(happening.stop.reads);
    case Happening::Kind::publish:
      return publish(happening.updated);
  }
  return {};
}

// As it was when the history began, had the limits been these. What persists is whole at rest once
// it has been gathered.
Coordinator Coordinator::at_rest(const FetchLimits& limits,
                                 const std::vector<bool>& persistent) const {
  Coordinator other = *this;
  other.limits_ = limits;
  other.in_pass_ = false;
  other.in_flight_.clear();
  other.history_.clear();
  other.live_ = 0;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    Knowledge& now = other.parameters_[i];
    const bool kept = persistent[i] && now.gathered_at_rest;
    now.persistent = persistent[i];
    now.ahead = false;
    now.active = now.active_at_rest;
    now.where = now.active > 0 || kept ? Where::whole : Where::away;
    if (now.where == Where::whole) other.live_ += now.elements;
  }
  return other;
}

const std::vector<Stop>* Coordinator::recorded() const {
  return just_recorded_ ? &trace().stops : nullptr;
}

// Takes the next step of the recorded order, or of the recording.
void Coordinator::follow(const Stop& stop, Decision& decision) {
  if (!in_pass_) {
    in_pass_ = true;
    just_recorded_ = false;
    evaluating_ = stop.kind == VisitKind::evaluate;
    position_ = 0;
  }
  std::vector<Stop>& stops = trace().stops;
  if (follows() && (position_ == stops.size() || stops[position_] != stop)) {
    forget_rest(decision, stop);
  }
  if (!follows()) stops.push_back(stop);
  ++position_;
}

// The recorded order is wrong from here on. What was gathered and kept for it goes.
void Coordinator::forget_rest(Decision& decision, std::optional<Stop> got) {
  std::vector<Stop>& stops = trace().stops;
  let_go_unless(decision, got ? got->reads : std::vector<Index>{});
  OrderChange& change = decision.change.emplace();
  change.at = static_cast<Index>(position_);
  change.got = std::move(got);
  if (position_ < stops.size()) change.expected = stops[position_];
  stops.resize(position_);
  trace().complete = false;
}

// What the stops ahead read, nearest first and each parameter once: as far as the bucket reaches,
// and as there is room for beside what has to be whole now.
std::vector<Coordinator::Ahead> Coordinator::ahead() const {
  std::vector<Ahead> result;
  std::vector<bool> seen(parameters_.size());
  Index needed = 0;
  for (const Knowledge& now : parameters_) {
    if (now.active > 0 || (now.persistent && now.where != Where::away)) needed += now.elements;
  }
  Index elements = 0;
  const std::vector<Stop>& stops = trace().stops;
  for (std::size_t at = position_; at < stops.size(); ++at) {
    for (const Index parameter : stops[at].reads) {
      const auto i = static_cast<std::size_t>(parameter);
      if (parameters_[i].persistent || seen[i]) continue;
      elements += parameters_[i].elements;
      if (elements > limits_.prefetch_bucket) return result;
      seen[i] = true;
      if (parameters_[i].active > 0) continue;  // it is counted as needed
      needed += parameters_[i].elements;
      if (needed > limits_.max_live) return result;
      result.push_back({parameter, at});
    }
  }
  return result;
}

// Whether a parameter that no running module reads is kept whole: because it persists, because few
// elements are read before its next use, or because that use is so near that it would be prefetched
// at once.
bool Coordinator::stays(Index parameter) const {
  if (known(parameter).persistent) return true;
  if (!follows()) return false;
  Index between = 0;
  const std::vector<Stop>& stops = trace().stops;
  for (std::size_t at = position_; at < stops.size() && between < limits_.reuse_distance; ++at) {
    if (contains(stops[at].reads, parameter)) return true;
    for (const Index other : stops[at].reads) between += known(other).elements;
  }
  const std::vector<Ahead> near = ahead();
  return std::any_of(near.begin(), near.end(),
                     [&](const Ahead& each) { return each.parameter == parameter; });
}

// One all-gather for each stop ahead, so that none waits for what a later one needs.
void Coordinator::prefetch(Decision& decision) {
  std::vector<Index> together;
  std::size_t stop = 0;
  Index live = live_;  // with what is in `together`
  for (const Ahead& next : ahead()) {
    if (known(next.parameter).where != Where::away) continue;
    if (next.stop != stop) gather(decision, std::exchange(together, {}), Cause::prefetch);
    stop = next.stop;
    live += known(next.parameter).elements;
    if (live > limits_.max_live || in_flight_.size() == kMostInFlight) break;
    together.push_back(next.parameter);
  }
  gather(decision, std::move(together), Cause::prefetch);
}

// Somebody begins to read these; which of them have to be gathered for that.
std::vector<Index> Coordinator::take(const std::vector<Index>& parameters) {
  std::vector<Index> missing;
  for (const Index parameter : parameters) {
    Knowledge& now = known(parameter);
    ++now.active;
    if (now.where == Where::away) missing.push_back(parameter);
    if (now.ahead) ++counts_.hits;
    now.ahead = false;
  }
  return missing;
}

// And has read them.
Decision Coordinator::give_back(const std::vector<Index>& parameters) {
  Decision decision;
  std::vector<Index> done;
  for (const Index parameter : parameters) {
    if (--known(parameter).active == 0 && !stays(parameter)) done.push_back(parameter);
  }
  let_go(decision, std::move(done), Cause::release);
  return decision;
}

void Coordinator::gather(Decision& decision, std::vector<Index> parameters, Cause cause) {
  if (parameters.empty()) return;
  for (const Index parameter : parameters) {
    Knowledge& now = known(parameter);
    now.where = Where::coming;
    now.gathered = true;
    now.ahead = cause == Cause::prefetch;
    live_ += now.elements;
  }
  in_flight_.push_back({cause, parameters});
  decision.actions.push_back({Action::Kind::gather, cause, std::move(parameters)});
}

void Coordinator::wait_for(Decision& decision, const std::vector<Index>& parameters) {
  for (auto flight = in_flight_.begin(); flight != in_flight_.end();) {
    const bool needed =
        std::any_of(flight->parameters.begin(), flight->parameters.end(),
                    [&](Index parameter) { return contains(parameters, parameter); });
    if (!needed) {
      ++flight;
      continue;
    }
    for (const Index parameter : flight->parameters) known(parameter).where = Where::whole;
    decision.actions.push_back({Action::Kind::wait, flight->cause, std::move(flight->parameters)});
    flight = in_flight_.erase(flight);
  }
}

void Coordinator::let_go(Decision& decision, std::vector<Index> parameters, Cause cause) {
  if (parameters.empty()) return;
  for (const Index parameter : parameters) {
    Knowledge& now = known(parameter);
    if (now.ahead) ++counts_.unused;
    now.ahead = false;
    now.where = Where::away;
    live_ -= now.elements;
  }
  decision.actions.push_back({Action::Kind::release, cause, std::move(parameters)});
}

// Everything that nobody reads now, nobody is about to read, and that does not persist; what is on
// its way arrives first.
void Coordinator::let_go_unless(Decision& decision, const std::vector<Index>& needed) {
  std::vector<Index> idle;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const Knowledge& now = parameters_[i];
    const auto parameter = static_cast<Index>(i);
    if (now.where == Where::away || now.active > 0 || now.persistent) continue;
    if (!contains(needed, parameter)) idle.push_back(parameter);
  }
  wait_for(decision, idle);
  let_go(decision, std::move(idle), Cause::release);
}

}  // namespace zerolab
