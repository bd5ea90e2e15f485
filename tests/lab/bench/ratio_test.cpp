#include "lab/bench/ratio.hpp"

#include "lab/bench/figures.hpp"
#include "tests/support/catch.hpp"

namespace zerolab::bench {
namespace {

TEST_CASE("a spread is the median and the quartiles, on the line between two values", "[lab]") {
  const Spread odd = spread_of({5, 1, 3});
  CHECK(odd.median == 3);
  CHECK(odd.low == 2);
  CHECK(odd.high == 4);
  const Spread even = spread_of({4, 1, 2, 3});
  CHECK(even.median == 2.5);
  CHECK(even.low == 1.75);
  const Spread one = spread_of({7});
  CHECK(one.low == 7);
  CHECK(one.high == 7);
}

TEST_CASE("a ratio is taken sample by sample, so a slow moment of the machine falls out", "[lab]") {
  const Spread ratio = ratio_of({2, 20, 6}, {1, 10, 3});
  CHECK(ratio.low == 2);
  CHECK(ratio.median == 2);
  CHECK(ratio.high == 2);
}

TEST_CASE("things to time take turns, each right after what comes before it", "[lab]") {
  std::string order;
  const auto note = [&](const char* text) { return [&order, text] { order += text; }; };
  const auto seconds = interleave(3, {{note("a")}, {note("b"), note("-")}, {note("c")}});
  CHECK(order ==
        "a-bc"
        "c-ba"
        "a-bc");
  REQUIRE(seconds.size() == 3);
  for (const auto& of_work : seconds) CHECK(of_work.size() == 3);
}

TEST_CASE("a target is met by the median, from its own side", "[lab]") {
  const Target at_most{Target::Kind::at_most, 1.25};
  const Target at_least{Target::Kind::at_least, 0.85};
  CHECK(ratio_figure("", {1.25, 1, 2}, at_most).met == "yes");
  CHECK(ratio_figure("", {1.26, 1, 2}, at_most).met == "no");
  CHECK(percent_figure("", {0.85, 0, 1}, at_least).met == "yes");
  CHECK(percent_figure("", {0.84, 0, 1}, at_least).met == "no");
  CHECK(ratio_figure("", {1, 1, 1}).met.empty());
}

}  // namespace
}  // namespace zerolab::bench
