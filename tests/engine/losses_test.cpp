#include "stages/engine/losses.hpp"

#include <cmath>
#include <limits>

#include "tests/support/catch.hpp"

using namespace zerolab;

namespace {

using Messages = std::vector<std::vector<std::byte>>;

Losses losses(const std::vector<std::int32_t>& targets, const std::vector<double>& of_passes) {
  Losses result;
  result.count(targets);
  for (const double loss : of_passes) result.add(loss);
  return result;
}

}  // namespace

TEST_CASE("a mean loss is a double sum in the order of passes, then of ranks", "[engine]") {
  // Beside 2^53 the 1 of the first pass is lost; in the order of ranks it would not be.
  const Messages messages{losses({0, 0}, {0x1p53, -0x1p53}).message(),
                          losses({0, 0}, {1, 1}).message()};
  const double sum = ((0x1p53 + 1) + -0x1p53) + 1;
  REQUIRE(sum == 1);
  const MeanLoss mean(messages);
  CHECK(mean.value == sum / 4);
  CHECK(mean.correction == 1);
  CHECK(mean.not_finite.empty());
}

TEST_CASE("a mean loss is over the targets that count, on whatever rank", "[engine]") {
  // 7 targets of loss 1, 2 of loss 4, and a rank without any; each loss is divided by 7
  const std::vector<std::int32_t> all(7, 3), two{0, 5, -1, -1, -1, -1, -1}, none(7, -1);
  const MeanLoss mean(
      {losses(all, {1}).message(), losses(two, {8.0 / 7}).message(), losses(none, {0}).message()});
  CHECK(std::abs(mean.value - 15.0 / 9) < 1e-15);
  CHECK(mean.correction == 21.0 / 9);

  const MeanLoss nothing({losses(none, {0}).message()});
  CHECK(nothing.value == 0);
  CHECK(nothing.correction == 1);
}

TEST_CASE("losses that are not finite are told by rank, and read behind what comes first",
          "[engine]") {
  Messages messages{losses({1}, {2}).message(),
                    losses({1}, {std::numeric_limits<double>::quiet_NaN()}).message(),
                    losses({1}, {std::numeric_limits<double>::infinity()}).message()};
  for (std::vector<std::byte>& message : messages)
    message.insert(message.begin(), 11, std::byte{9});
  const MeanLoss mean(messages, 11);
  CHECK(mean.not_finite == std::set<int>{1, 2});
  CHECK(std::isnan(mean.value));
}
