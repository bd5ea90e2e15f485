#include <fmt/format.h>

#include "stages/base/types.hpp"
#include "tests/cli/command.hpp"
#include "tests/support/catch.hpp"

using namespace zerolab;
using namespace zerolab::test;
using nlohmann::json;

TEST_CASE("gpt-nano learns the default text below 2.6 nats per byte in 200 steps, in every stage",
          "[slow]") {
  const Scratch scratch;
  json losses;
  json hash;
  for (const int stage : {0, 1, 2, 3}) {
    const Outcome outcome = mpirun_zerolab(
        4, fmt::format("train --stage {} --model gpt-nano --steps 200 --validate-every 100 "
                       "--log-level off --out {}",
                       stage, scratch.arg("run")));
    INFO(outcome.all());
    REQUIRE(outcome.status == 0);
    const json summary = read_json(scratch.path("run") / "summary.json");
    const json& steps = summary["steps"];
    CHECK(steps.front()["loss"] > 5.4);
    CHECK(steps.front()["loss"] < 5.7);
    CHECK(summary["validation"].back()["step"] == 200);
    CHECK(summary["validation"].back()["loss"] < 2.6);
    if (stage == 0) {
      losses = summary["validation"];
      hash = steps.back()["param_hash"];
    }
    CHECK(summary["validation"] == losses);
    CHECK(steps.back()["param_hash"] == hash);
  }
}
