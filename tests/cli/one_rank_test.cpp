#include <fmt/format.h>

#include "tests/cli/command.hpp"
#include "tests/support/catch.hpp"

using namespace zerolab::test;

TEST_CASE("B96: one rank is told, in one line, that there is nothing to partition") {
  const Scratch scratch;
  for (const int stage : {0, 1, 2, 3}) {
    for (const int ranks : {1, 2}) {
      const Outcome outcome = run_zerolab(
          fmt::format("train -n {} --stage {} --model mlp-small --micro-batch 1 --steps 1 --out {}",
                      ranks, stage, scratch.arg("run")));
      INFO(outcome.all());
      CHECK(outcome.status == 0);
      CHECK(outcome.count("one rank: nothing to partition") == (ranks == 1 ? 1 : 0));
    }
  }
}
