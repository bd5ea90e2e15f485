#include "stages/comm/agreement.hpp"

#include <optional>

#include "tests/support/catch.hpp"
#include "tests/support/run_ranks.hpp"
#include "tests/support/thrown.hpp"

using namespace zerolab;

namespace {

using Json = nlohmann::ordered_json;

/// What each of three ranks throws.
std::vector<std::optional<Error>> outcome(const std::vector<Json>& facts) {
  return run_ranks(3, [&](Communicator& communicator) {
    return thrown_by(
        [&] { agree(communicator, facts[static_cast<std::size_t>(communicator.rank())]); });
  });
}

}  // namespace

TEST_CASE("ranks that were started alike agree") {
  const Json facts{{"--seed", 1}, {"--data", "a"}};
  for (const auto& error : outcome({facts, facts, facts})) CHECK_FALSE(error);
}

TEST_CASE("what ranks were started with differently is named on every rank, with both values") {
  const Json facts{{"--seed", 1}, {"--data", "100 bytes"}};
  const Json other{{"--seed", 7}, {"--data", "100 bytes"}};
  for (const auto& error : outcome({facts, facts, other})) {
    REQUIRE(error);
    CHECK(error->code() == Code::ranks_disagree);
    CHECK(contains(error->what_happened(), "--seed: 1 on rank 0, 7 on rank 2"));
    CHECK_FALSE(contains(error->what_happened(), "--data"));
  }
}

TEST_CASE("a fact that only one rank has is a difference too") {
  const Json two{{"stage", 2}, {"stage 3", true}};
  const Json one{{"stage", 2}};
  for (const auto& error : outcome({one, two, one})) {
    REQUIRE(error);
    CHECK(contains(error->what_happened(), "stage 3"));
  }
}
