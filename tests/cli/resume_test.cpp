// What the program says of a checkpoint that it goes on from.
#include "tests/cli/command.hpp"
#include "tests/support/catch.hpp"

using namespace zerolab::test;

TEST_CASE("B25: what was read, and of how many files, is printed at the same and at another N",
          "[cli][cases]") {
  const Scratch scratch;
  const auto train = [&](const std::string& rest) {
    const Outcome outcome =
        run_zerolab("train --model mlp-small --plain --out " + scratch.arg("run") + " " + rest);
    INFO(outcome.all());
    CHECK(outcome.status == 0);
    return outcome;
  };
  const std::string checkpoint = scratch.arg("ck");
  train("-n 4 --stage 3 --steps 1 --save " + checkpoint);
  const Outcome same = train("-n 4 --steps 2 --resume " + checkpoint);
  CHECK(same.count("rank 0 has read 592 KiB from 1 of 4 shards, 2.31 MiB in all") == 1);
  const Outcome other = train("-n 3 --steps 2 --resume " + checkpoint);
  CHECK(other.count("from 2 of 4 shards, 2.31 MiB in all") == 1);
}
