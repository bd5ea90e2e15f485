#include "stages/zero3/coordinator.hpp"

#include <fmt/format.h>

#include "tests/support/catch.hpp"

namespace zerolab {
namespace {

constexpr Index kMuch = 1'000'000;

/// What the coordinator decides, in short: "gather 1,2 (fetch); wait 1,2; release 0".
std::string text(const Decision& decision) {
  std::vector<std::string> parts;
  for (const Action& action : decision.actions) {
    const char* const verb = action.kind == Action::Kind::gather ? "gather"
                             : action.kind == Action::Kind::wait ? "wait"
                                                                 : "release";
    parts.push_back(fmt::format(
        "{} {}{}", verb, fmt::join(action.parameters, ","),
        action.kind == Action::Kind::gather ? fmt::format(" ({})", name_of(action.cause)) : ""));
  }
  return fmt::format("{}", fmt::join(parts, "; "));
}

Stop forward(Index module, std::vector<Index> reads) {
  return {module, VisitKind::forward, std::move(reads)};
}
Stop backward(Index module, std::vector<Index> reads) {
  return {module, VisitKind::backward, std::move(reads)};
}

/// Layers 0 to n-1 of ten elements, each reading the parameter of its number, forward and backward.
std::vector<Stop> chain(Index layers) {
  std::vector<Stop> stops;
  for (Index i = 0; i < layers; ++i) stops.push_back(forward(i, {i}));
  for (Index i = layers - 1; i >= 0; --i) stops.push_back(backward(i, {i}));
  return stops;
}

Coordinator for_chain(Index layers, FetchLimits limits) {
  const auto count = static_cast<std::size_t>(layers);
  return {std::vector<Index>(count, 10), std::vector<bool>(count), limits};
}

/// One pass; what is decided before and after each stop.
std::vector<std::string> run(Coordinator& coordinator, const std::vector<Stop>& stops) {
  std::vector<std::string> decided;
  for (const Stop& stop : stops) {
    decided.push_back(text(coordinator.before(stop)));
    decided.push_back(text(coordinator.after(stop)));
  }
  decided.push_back(text(coordinator.end_pass(true)));
  return decided;
}

TEST_CASE("a pass without prefetch gathers for each visit and lets go after it", "[zero3]") {
  Coordinator coordinator = for_chain(2, {.max_live = kMuch});
  const std::vector<std::string> expected{"gather 0 (fetch); wait 0",
                                          "release 0",
                                          "gather 1 (fetch); wait 1",
                                          "release 1",
                                          "gather 1 (fetch); wait 1",
                                          "release 1",
                                          "gather 0 (fetch); wait 0",
                                          "release 0",
                                          ""};
  for (int pass = 0; pass < 3; ++pass) CHECK(run(coordinator, chain(2)) == expected);
  CHECK(coordinator.counts() == FetchCounts{0, 12, 0});
}

TEST_CASE("from the second pass on the next modules are gathered ahead, as far as the bucket goes",
          "[zero3]") {
  Coordinator coordinator = for_chain(3, {.prefetch_bucket = 15, .max_live = kMuch});
  run(coordinator, chain(3));
  CHECK(run(coordinator, chain(3)) ==
        std::vector<std::string>{
            "gather 0 (fetch); gather 1 (prefetch); wait 0", "release 0",
            "gather 2 (prefetch); wait 1", "release 1",
            // 2 is read again at once, so it stays, and so nothing is gathered ahead of that
            "wait 2", "", "gather 1 (prefetch)", "release 2", "gather 0 (prefetch); wait 1",
            "release 1", "wait 0", "release 0", ""});
  CHECK(coordinator.counts() == FetchCounts{4, 7, 0});
}

TEST_CASE("one all-gather is prefetched for each stop, all of its parameters together", "[zero3]") {
  Coordinator coordinator({1, 1, 1, 1, 1}, std::vector<bool>(5),
                          {.prefetch_bucket = 4, .max_live = kMuch});
  const std::vector<Stop> stops{forward(0, {0}), forward(1, {1, 2}), forward(2, {}),
                                forward(3, {3, 4})};
  run(coordinator, stops);
  CHECK(text(coordinator.before(stops[0])) ==
        "gather 0 (fetch); gather 1,2 (prefetch); gather 3,4 (prefetch); wait 0");
}

TEST_CASE("prefetching stops at max_live, a module's own fetch does not", "[zero3]") {
  Coordinator coordinator = for_chain(4, {.prefetch_bucket = kMuch, .max_live = 25});
  run(coordinator, chain(4));
  CHECK(text(coordinator.before(chain(4)[0])) == "gather 0 (fetch); gather 1 (prefetch); wait 0");
  CHECK(coordinator.live() == 20);

  Coordinator little = for_chain(4, {.prefetch_bucket = kMuch, .max_live = 5});
  run(little, chain(4));
  CHECK(text(little.before(chain(4)[0])) == "gather 0 (fetch); wait 0");
  CHECK(little.live() == 10);
}

TEST_CASE("no more gathers are on their way than the bound, however large the bucket", "[zero3]") {
  Coordinator coordinator = for_chain(20, {.prefetch_bucket = kMuch, .max_live = kMuch});
  run(coordinator, chain(20));
  const Decision first = coordinator.before(chain(20)[0]);
  const auto gathers =
      std::count_if(first.actions.begin(), first.actions.end(),
                    [](const Action& action) { return action.kind == Action::Kind::gather; });
  CHECK(gathers == static_cast<std::ptrdiff_t>(Coordinator::kMostInFlight));
}

TEST_CASE("what is read again within the reuse distance stays", "[zero3]") {
  // Between a layer's forward and its backward 2 (layers behind it) x 10 elements are read.
  for (const auto& [distance, kept] :
       {std::pair{Index{0}, 0}, std::pair{Index{1}, 1}, std::pair{Index{20}, 1},
        std::pair{Index{21}, 2}, std::pair{Index{41}, 3}, std::pair{kMuch, 4}}) {
    INFO("reuse distance " << distance);
    Coordinator coordinator = for_chain(4, {.max_live = kMuch, .reuse_distance = distance});
    run(coordinator, chain(4));
    int gathers = 0;
    Index most = 0;
    for (const Stop& stop : chain(4)) {
      for (const Action& action : coordinator.before(stop).actions) {
        gathers += action.kind == Action::Kind::gather ? 1 : 0;
      }
      most = std::max(most, coordinator.live());
      coordinator.after(stop);
    }
    CHECK(gathers == 8 - kept);
    CHECK(most == 10 * std::max(kept, 1));
    CHECK(text(coordinator.end_pass(true)).empty());
  }
}

TEST_CASE("what persists is gathered once a step, after the update", "[zero3]") {
  Coordinator coordinator({3, 10}, {true, false}, {.prefetch_bucket = 0, .max_live = kMuch});
  const std::vector<Stop> stops{forward(0, {0, 1}), backward(0, {0, 1})};
  CHECK(run(coordinator, stops) == std::vector<std::string>{"gather 0,1 (fetch); wait 0,1",
                                                            "release 1", "gather 1 (fetch); wait 1",
                                                            "release 1", ""});
  CHECK(text(coordinator.publish({true, true})) == "release 0; gather 0 (persist); wait 0");
  CHECK(coordinator.live() == 3);
  CHECK(run(coordinator, stops)[0] == "gather 1 (fetch); wait 1");
}

TEST_CASE("a changed order is told, what was gathered for the old one goes, and it recovers",
          "[zero3]") {
  Coordinator coordinator = for_chain(4, {.prefetch_bucket = 20, .max_live = kMuch});
  const std::vector<Stop> stops{forward(0, {0}), forward(1, {1}), forward(2, {2})};
  const std::vector<Stop> other{forward(0, {0}), forward(3, {3}), forward(2, {2})};
  run(coordinator, stops);
  coordinator.before(other[0]);
  CHECK(text(coordinator.after(other[0])) == "release 0");
  const Decision changed = coordinator.before(other[1]);
  REQUIRE(changed.change);
  CHECK(changed.change->at == 1);
  CHECK(changed.change->expected == stops[1]);
  CHECK(changed.change->got == other[1]);
  CHECK(text(changed) == "wait 1; wait 2; release 1,2; gather 3 (fetch); wait 3");
  CHECK(coordinator.counts().unused == 2);
  CHECK(text(coordinator.after(other[1])) == "release 3");
  CHECK(text(coordinator.before(other[2])) == "gather 2 (fetch); wait 2");
  CHECK(text(coordinator.after(other[2])) == "release 2");
  CHECK(coordinator.end_pass(true).actions.empty());
  REQUIRE(coordinator.recorded() != nullptr);
  CHECK(*coordinator.recorded() == other);
  CHECK(run(coordinator, other)[0] ==
        "gather 0 (fetch); gather 3 (prefetch); gather 2 (prefetch); wait 0");
  CHECK(coordinator.recorded() == nullptr);
}

TEST_CASE("a needed gather that is on its way outlives the change of order", "[zero3]") {
  Coordinator coordinator = for_chain(3, {.prefetch_bucket = 20, .max_live = kMuch});
  const std::vector<Stop> stops{forward(0, {0}), forward(1, {1}), forward(2, {2})};
  run(coordinator, stops);
  coordinator.before(stops[0]);
  coordinator.after(stops[0]);
  CHECK(text(coordinator.before(stops[2])) == "wait 1; release 1; wait 2");
  CHECK(coordinator.counts().hits == 1);
}

TEST_CASE("a pass that ends early or goes on leaves nothing, and is the order from then on",
          "[zero3]") {
  Coordinator coordinator = for_chain(3, {.prefetch_bucket = 20, .max_live = kMuch});
  const std::vector<Stop> whole{forward(0, {0}), forward(1, {1}), forward(2, {2})};
  run(coordinator, whole);
  coordinator.before(whole[0]);
  coordinator.after(whole[0]);
  const Decision early = coordinator.end_pass(true);
  REQUIRE(early.change);
  CHECK(early.change->expected == whole[1]);
  CHECK_FALSE(early.change->got);
  CHECK(text(early) == "wait 1; wait 2; release 1,2");
  CHECK(coordinator.live() == 0);

  coordinator.before(whole[0]);
  coordinator.after(whole[0]);
  const Decision further = coordinator.before(whole[1]);
  REQUIRE(further.change);
  CHECK_FALSE(further.change->expected);
  CHECK(further.change->got == whole[1]);
}

TEST_CASE("evaluations have an order of their own", "[zero3]") {
  Coordinator coordinator = for_chain(2, {.prefetch_bucket = 10, .max_live = kMuch});
  const std::vector<Stop> evaluation{{0, VisitKind::evaluate, {0}}, {1, VisitKind::evaluate, {1}}};
  const std::vector<std::string> first = run(coordinator, evaluation);
  run(coordinator, chain(2));
  const std::vector<std::string> second = run(coordinator, evaluation);
  CHECK(first[0] == "gather 0 (fetch); wait 0");
  CHECK(second[0] == "gather 0 (fetch); gather 1 (prefetch); wait 0");
  const std::vector<std::string> training = run(coordinator, chain(2));
  CHECK(training[0] == "gather 0 (fetch); gather 1 (prefetch); wait 0");
}

TEST_CASE("a pass that an exception ended teaches no order and leaves nothing", "[zero3]") {
  Coordinator coordinator = for_chain(3, {.prefetch_bucket = 20, .max_live = kMuch});
  const std::vector<Stop> stops = chain(3);
  coordinator.before(stops[0]);
  coordinator.after(stops[0]);
  coordinator.end_pass(false);
  CHECK(run(coordinator, stops)[0] == "gather 0 (fetch); wait 0");  // still the first to record
  coordinator.before(stops[0]);
  coordinator.after(stops[0]);
  CHECK(text(coordinator.end_pass(false)) == "wait 1; wait 2; release 1,2");
  const Decision next = coordinator.before(stops[0]);
  CHECK_FALSE(next.change);
  CHECK(text(next) == "gather 0 (fetch); gather 1 (prefetch); gather 2 (prefetch); wait 0");
}

TEST_CASE("a parameter that a module around reads stays while those inside run", "[zero3]") {
  Coordinator coordinator = for_chain(2, {.max_live = kMuch});
  const Stop around = forward(7, {0});
  const Stop inside = forward(8, {0, 1});
  for (int pass = 0; pass < 2; ++pass) {
    CHECK(text(coordinator.before(around)) == "gather 0 (fetch); wait 0");
    CHECK(text(coordinator.before(inside)) == "gather 1 (fetch); wait 1");
    CHECK(text(coordinator.after(inside)) == "release 1");
    CHECK(text(coordinator.after(around)) == "release 0");
    CHECK(text(coordinator.end_pass(true)).empty());
  }
}

}  // namespace
}  // namespace zerolab
