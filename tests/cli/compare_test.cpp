#include <fmt/format.h>

#include "tests/cli/command.hpp"
#include "tests/support/catch.hpp"

using namespace zerolab;
using namespace zerolab::test;
using nlohmann::json;

namespace {

// Losses, norms and hashes, without what a clock or a transport decides.
json numbers(const json& compared) {
  json result = json::array();
  for (const json& stage : compared["stages"]) {
    result.push_back({stage["loss"], stage["grad_norm"], stage["param_hash"]});
  }
  return result;
}

constexpr const char* kOddTransformer = R"({
  "type": "transformer", "vocab_size": 256, "sequence_length": 7, "num_layers": 2, "num_heads": 3,
  "hidden_size": 9
})";

}  // namespace

TEST_CASE("N1, N3: processes give the bits of threads, in all stages at 1 to 4 ranks") {
  const Scratch scratch;
  scratch.write("odd.json", kOddTransformer);
  for (const std::string& model : {std::string("mlp-small"), scratch.arg("odd.json")}) {
    for (const int ranks : {1, 2, 3, 4}) {
      const std::string arguments = fmt::format("compare --model {} --steps 10 --out ", model);
      const Outcome processes = mpirun_zerolab(ranks, arguments + scratch.arg("processes"));
      const Outcome threads =
          run_zerolab(arguments + scratch.arg("threads") + fmt::format(" -n {}", ranks));
      INFO(model << ", " << ranks << " ranks\n" << processes.all() << threads.all());
      REQUIRE(processes.status == 0);
      REQUIRE(threads.status == 0);
      const json by_processes = read_json(scratch.path("processes") / "compare.json");
      const json by_threads = read_json(scratch.path("threads") / "compare.json");
      CHECK(by_processes["bitwise_equal"] == true);
      CHECK(by_threads["bitwise_equal"] == true);
      CHECK(by_processes["stages"].size() == 4);
      CHECK(numbers(by_processes) == numbers(by_threads));
      CHECK(processes.out.find("bit-identical: yes") != std::string::npos);
    }
  }
}

TEST_CASE("the table has a row for every stage, and no progress line in a pipe") {
  const Scratch scratch;
  const Outcome outcome = run_zerolab(
      "compare -n 3 --model mlp-small --steps 3 --stages 3,0 --out " + scratch.arg("run"));
  REQUIRE(outcome.status == 0);
  CHECK(outcome.out.find("stage 3") != std::string::npos);
  CHECK(outcome.out.find("stage 1") == std::string::npos);
  CHECK(outcome.out.find('\r') == std::string::npos);
  CHECK(outcome.out.find("run folder: ") != std::string::npos);
  CHECK(outcome.err.empty());
}

TEST_CASE("Option --json prints the comparison and nothing else") {
  const Scratch scratch;
  const Outcome outcome =
      mpirun_zerolab(2, "compare --json --model mlp-small --steps 2 --out " + scratch.arg("run"));
  REQUIRE(outcome.status == 0);
  CHECK(json::parse(outcome.out) == read_json(scratch.path("run") / "compare.json"));
}

TEST_CASE(
    "with accumulation stages may differ in the last bits, and the comparison says by how much") {
  const Scratch scratch;
  const Outcome outcome = run_zerolab(
      "compare -n 3 --model mlp-small --steps 4 "
      "--gradient-accumulation-steps 3 --out " +
      scratch.arg("run"));
  INFO(outcome.all());
  CHECK(outcome.status == 0);
  const json compared = read_json(scratch.path("run") / "compare.json");
  if (compared["bitwise_equal"] == false) {
    CHECK(compared["max_ulp"] > 0);
    CHECK(outcome.out.find("ulp") != std::string::npos);
  }
}
