// What the coordinator says would be live under other limits is what a coordinator with those
// limits has, when the same happens to it.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "stages/zero3/gather_memory.hpp"
#include "stages/zero3/persistence.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/dice.hpp"

namespace zerolab {
namespace {

constexpr std::size_t kParameters = 9;

using test::Dice;

ZeroSettings draw_limits(Dice& dice) {
  ZeroSettings settings;
  settings.prefetch_bucket_size = dice.limit(60);
  settings.max_live_parameters = dice.limit(80);
  settings.max_reuse_distance = dice.limit(120);
  settings.param_persistence_threshold = dice.limit(12);
  settings.model_persistence_threshold = dice.limit(30);
  return settings;
}

Coordinator::Live live_at_the_end(const Coordinator& coordinator, const FetchLimits& limits,
                                  const std::vector<bool>& persistent,
                                  std::optional<Index> asked_for) {
  Coordinator::Live last;
  coordinator.decide_again(limits, persistent, asked_for,
                           [&](const Coordinator::Live& live) { last = live; });
  return last;
}

/// A coordinator, and what a rank that carries its decisions out has whole or on its way.
struct Rank {
  Rank(const std::vector<Index>& sizes, const ZeroSettings& settings)
      : limits(fetch_limits(settings)),
        persistent(persistent_parameters(sizes, settings)),
        coordinator(sizes, persistent, limits),
        live(sizes.size()) {}

  void carry_out(const Decision& decision) {
    for (const Action& action : decision.actions) {
      if (action.kind == Action::Kind::wait) continue;
      for (const Index each : action.parameters) {
        live[static_cast<std::size_t>(each)] = action.kind == Action::Kind::gather;
      }
    }
  }

  FetchLimits limits;
  std::vector<bool> persistent;
  Coordinator coordinator;
  std::vector<bool> live;
};

/// Two ranks to which the same happens; each is asked about the other one after every event.
struct Pair {
  Rank first, second;
  std::string differs = {};

  template <typename Event>
  void both(const char* what, Event event) {
    for (Rank* rank : {&first, &second}) rank->carry_out(event(rank->coordinator));
    compare(what, first, second);
    compare(what, second, first);
    compare(what, first, first);
  }
  void compare(const char* what, const Rank& asked, const Rank& about) {
    const Coordinator::Live told =
        live_at_the_end(asked.coordinator, about.limits, about.persistent, std::nullopt);
    if (told == about.live || !differs.empty()) return;
    differs = fmt::format("after {}: {} is told, {} is there", what, fmt::join(told, ","),
                          fmt::join(about.live, ","));
  }
};

/// Nested modules, each reading a few parameters; some passes leave the recorded order.
struct Walk {
  Pair& pair;
  std::vector<Stop> order;

  void visit(std::size_t from, std::size_t to) {
    for (std::size_t i = from; i < to; ++i) {
      const Stop& stop = order[i];
      pair.both("before", [&](Coordinator& c) { return c.before(stop); });
      const std::size_t inside = i + 3 <= to && stop.module % 4 == 0 ? 2 : 0;
      visit(i + 1, i + 1 + inside);
      pair.both("after", [&](Coordinator& c) { return c.after(stop); });
      i += inside;
    }
  }
};

std::vector<Stop> draw_order(Dice& dice) {
  std::vector<Stop> order;
  for (Index i = 0; i < 12; ++i) {
    Stop stop{i, VisitKind::forward, {}};
    for (Index j = dice.below(3); j > 0; --j) {
      const Index parameter = dice.below(kParameters);
      if (std::find(stop.reads.begin(), stop.reads.end(), parameter) == stop.reads.end()) {
        stop.reads.push_back(parameter);
      }
    }
    order.push_back(stop);
  }
  return order;
}

std::string difference(std::uint64_t seed) {
  Dice dice(seed, 2);
  std::vector<Index> sizes;
  for (std::size_t i = 0; i < kParameters; ++i) sizes.push_back(dice.below(20));
  Pair pair{Rank(sizes, draw_limits(dice)), Rank(sizes, draw_limits(dice))};
  Walk walk{pair, draw_order(dice)};
  const std::vector<Index> scope{1, 4};
  for (int pass = 0; pass < 4; ++pass) {
    if (pass == 2 && dice.below(2) == 0) std::swap(walk.order[4], walk.order[7]);
    walk.visit(0, walk.order.size());
    for (Rank* rank : {&pair.first, &pair.second}) {
      rank->carry_out(rank->coordinator.end_pass(true));
    }
    const std::vector<bool> updated(kParameters, true);
    if (dice.below(2) == 0) continue;  // another micro-step
    pair.both("publish", [&](Coordinator& c) { return c.publish(updated); });
    pair.both("open", [&](Coordinator& c) { return c.open_scope(scope); });
    pair.both("close", [&](Coordinator& c) { return c.close_scope(scope); });
  }
  return pair.differs;
}

TEST_CASE("deciding a pass over again under other limits gives what those limits would have given",
          "[zero3]") {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    INFO("seed " << seed);
    CHECK(difference(seed) == "");
  }
}

TEST_CASE("of the latest decision nothing counts behind the gathering that is asked for",
          "[zero3]") {
  Coordinator coordinator({10, 20, 30, 40}, std::vector<bool>(4),
                          {.prefetch_bucket = 1000, .max_live = 1000});
  const std::vector<Stop> stops{
      {0, VisitKind::forward, {0, 1}}, {1, VisitKind::forward, {2}}, {2, VisitKind::forward, {3}}};
  for (const Stop& stop : stops) {
    coordinator.before(stop);
    coordinator.after(stop);
  }
  coordinator.end_pass(true);
  coordinator.before(stops[0]);
  const auto live = [&](const FetchLimits& limits, std::optional<Index> asked_for) {
    return live_at_the_end(coordinator, limits, std::vector<bool>(4), asked_for);
  };
  const FetchLimits much{.prefetch_bucket = 1000, .max_live = 1000};
  CHECK(live(much, std::nullopt) == std::vector<bool>{true, true, true, true});
  CHECK(live(much, 0) == std::vector<bool>{true, false, false, false});
  CHECK(live(much, 1) == std::vector<bool>{true, true, false, false});
  CHECK(live(much, 2) == std::vector<bool>{true, true, true, false});
  // Not gathered at all then: all of the decision counts.
  CHECK(live({.prefetch_bucket = 30, .max_live = 1000}, 3) ==
        std::vector<bool>{true, true, true, false});
}

}  // namespace
}  // namespace zerolab
