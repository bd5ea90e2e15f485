#include "stages/memory/governor.hpp"

#include <limits>

#include "tests/support/catch.hpp"

namespace zerolab {
namespace {

constexpr Index kMost = std::numeric_limits<Index>::max();

TEST_CASE("the value found is where fitting begins, from either side", "[memory]") {
  for (const Index border : {0, 1, 2, 499, 998, 999}) {
    const Setting down{"down", 1000, 0};
    CHECK(nearest_that_fits(down, [&](Index value) { return value <= border; }) == border);
    const Setting up{"up", 0, 1000};
    CHECK(nearest_that_fits(up, [&](Index value) { return value > border; }) == border + 1);
  }
  const Setting unlimited{"unlimited", kMost, 0};
  CHECK(nearest_that_fits(unlimited, [](Index value) { return value < kMost; }) == kMost - 1);
  CHECK(nearest_that_fits(unlimited, [](Index value) { return value == 0; }) == 0);
}

TEST_CASE("a setting is no help if not even its extreme fits, or if it is there already",
          "[memory]") {
  CHECK_FALSE(nearest_that_fits({"down", 1000, 10}, [](Index value) { return value < 10; }));
  CHECK_FALSE(nearest_that_fits({"there", 1, 1}, [](Index) { return true; }));
}

TEST_CASE("bytes proportional to a setting are rounded up, for large numbers too", "[memory]") {
  CHECK(proportional_bytes(100, 3, 10) == 30);
  CHECK(proportional_bytes(101, 3, 10) == 31);
  CHECK(proportional_bytes(0, 3, 10) == 0);
  CHECK(proportional_bytes(Index{1} << 50, 499'999'999, 500'000'000) ==
        (Index{1} << 50) - (Index{1} << 50) / 500'000'000);
}

}  // namespace
}  // namespace zerolab
