#include <fmt/format.h>

#include <array>
#include <set>

#include "stages/base/types.hpp"
#include "tests/cli/command.hpp"
#include "tests/support/catch.hpp"

using namespace zerolab;
using namespace zerolab::test;
using nlohmann::json;

namespace {

/// The highest peak over all ranks: the least --device-memory that trains.
Index need(const json& summary) {
  Index most = 0;
  for (const json& rank : summary["memory"]) {
    most = std::max(most, rank["device"]["peak"]["total"].get<Index>());
  }
  return most;
}

std::array<std::string, 3> move_of(const json& json) {
  return {json["from"].get<std::string>(), json["to"].get<std::string>(),
          json["cause"].get<std::string>()};
}

}  // namespace

TEST_CASE("a run folder has everything: run.json, events of every rank, summary.json") {
  const Scratch scratch;
  const Outcome outcome = mpirun_zerolab(
      3, "train --stage 3 --model gpt-nano --micro-batch 1 --steps 2 --out " + scratch.arg("run"));
  INFO(outcome.all());
  REQUIRE(outcome.status == 0);

  const json run = read_json(scratch.path("run") / "run.json");
  CHECK(run["world_size"] == 3);
  CHECK(run["stage"] == 3);
  CHECK(run["model"]["name"] == "gpt-nano");
  CHECK(run["parameters"].size() == 40);
  std::set<std::array<std::string, 3>> moves;
  for (const json& move : run["state_machine"]["parameter"]) {
    moves.insert(move_of(move));
  }

  const json summary = read_json(scratch.path("run") / "summary.json");
  CHECK(summary["params"] == 170560);
  CHECK(summary["steps"].size() == 2);
  CHECK(summary["memory"].size() == 3);
  CHECK(summary["steps"][1]["param_hash"].get<std::string>().size() == 16);

  for (const int rank : {0, 1, 2}) {
    const auto events =
        read_json_lines(scratch.path("run") / fmt::format("rank{}.events.jsonl", rank));
    std::set<std::string> kinds;
    json seq = -1;
    int illegal = 0;
    int out_of_order = 0;
    for (const json& event : events) {
      kinds.insert(event["ev"].get<std::string>());
      if (event["rank"] != rank || event["seq"] <= seq) ++out_of_order;
      seq = event["seq"];
      if (event["ev"] == "param" && moves.count(move_of(event)) == 0) {
        ++illegal;
      }
    }
    CHECK(kinds == std::set<std::string>{"alloc", "comm", "free", "grad", "param", "span", "step"});
    CHECK(illegal == 0);
    CHECK(out_of_order == 0);
  }
}

TEST_CASE("Log level steps writes a line a step, off writes none") {
  const Scratch scratch;
  const std::string common = "train -n 2 --model mlp-small --steps 3 --out " + scratch.arg("run");
  REQUIRE(run_zerolab(common + " --log-level steps").status == 0);
  CHECK(read_json_lines(scratch.path("run") / "rank1.events.jsonl").size() == 3);
  REQUIRE(run_zerolab(common + " --log-level off").status == 0);
  CHECK(!std::filesystem::exists(scratch.path("run") / "rank1.events.jsonl"));
}

TEST_CASE("Option --show prints what rank 0 does as it happens") {
  const Scratch scratch;
  const std::string common =
      "train -n 2 --stage 3 --model mlp-small --steps 1 --out " + scratch.arg("run") + " --show ";
  const Outcome transitions = run_zerolab(common + "transitions");
  CHECK(transitions.out.find("NOT_AVAILABLE -> INFLIGHT") != std::string::npos);
  CHECK(transitions.out.find("fetch by embedding") != std::string::npos);
  CHECK(run_zerolab(common + "comm").out.find("reduce_scatter") != std::string::npos);
  CHECK(run_zerolab(common + "memory").out.find("gather_buffers") != std::string::npos);
}

TEST_CASE(
    "one byte below its need a stage ends with status 3 and one report, at its need it trains") {
  const Scratch scratch;
  for (const int stage : {0, 1, 2, 3}) {
    const std::string common = fmt::format("train --stage {} --model mlp-small --steps 2 --out {} ",
                                           stage, scratch.arg("run"));
    REQUIRE(mpirun_zerolab(4, common).status == 0);
    const Index bytes = need(read_json(scratch.path("run") / "summary.json"));

    const Outcome enough = mpirun_zerolab(4, common + fmt::format("--device-memory {}", bytes));
    INFO(enough.all());
    CHECK(enough.status == 0);
    CHECK(need(read_json(scratch.path("run") / "summary.json")) == bytes);

    const Outcome short_by_one =
        mpirun_zerolab(4, common + fmt::format("--device-memory {}", bytes - 1));
    INFO(short_by_one.all());
    CHECK(short_by_one.status == 3);
    CHECK(short_by_one.count("ZL301") == 1);
    CHECK(short_by_one.count("largest holders") == 1);
    CHECK(read_json(scratch.path("run") / "error.json")["code"] == "ZL301");
  }
}

TEST_CASE("the needs of mlp-small at 4 ranks are ordered: stage 3 < 2 < 1 < 0") {
  const Scratch scratch;
  Index before = 0;
  for (const int stage : {3, 2, 1, 0}) {
    REQUIRE(mpirun_zerolab(4, fmt::format("train --stage {} --model mlp-small --steps 2 "
                                          "--out {}",
                                          stage, scratch.arg("run")))
                .status == 0);
    const Index bytes = need(read_json(scratch.path("run") / "summary.json"));
    CHECK(bytes > before);
    before = bytes;
  }
}

TEST_CASE(
    "a tied head that is not registered ends all ranks with status 4 and says the call to make") {
  const Scratch scratch;
  const std::string common =
      "train --stage 3 --model gpt-nano --micro-batch 1 --steps 1 --out " + scratch.arg("run");
  for (const bool processes : {true, false}) {
    const Outcome outcome = processes ? mpirun_zerolab(4, common + " --break unregistered-head")
                                      : run_zerolab(common + " --break unregistered-head -n 4");
    INFO(outcome.all());
    CHECK(outcome.status == 4);
    CHECK(outcome.count("ZL401") == 1);
    CHECK(outcome.count("'token_embedding.weight'") == 1);
    CHECK(outcome.count("module 'head' on rank ") == 1);
    CHECK(outcome.count("register_external_parameter(head, token_embedding.weight)") == 1);
  }
  CHECK(mpirun_zerolab(4, common).status == 0);
  // The mistake shows in stage 3 only: the others hold every parameter whole.
  const std::string stage2 =
      "train --stage 2 --model gpt-nano --micro-batch 1 --steps 1 --out " + scratch.arg("run");
  CHECK(mpirun_zerolab(2, stage2 + " --break unregistered-head").status == 0);
}

TEST_CASE("frozen parameters and recomputation are told by heading, log and summary") {
  const Scratch scratch;
  const std::string common = "train --stage 3 --model gpt-nano --micro-batch 1 --steps 2 --out " +
                             scratch.arg("run") + " --freeze token_embedding,blocks.0.norm1.bias";
  const Outcome outcome = mpirun_zerolab(3, common + " --activation-checkpointing");
  INFO(outcome.all());
  REQUIRE(outcome.status == 0);
  CHECK(outcome.count("170,560 parameters, 16,448 of them frozen") == 1);
  const nlohmann::json summary = read_json(scratch.path("run") / "summary.json");
  CHECK(summary["params"] == 170560);
  CHECK(summary["trainable_params"] == 170560 - 256 * 64 - 64);
  std::set<std::string> frozen;
  const nlohmann::json run = read_json(scratch.path("run") / "run.json");
  for (const nlohmann::json& parameter : run["parameters"]) {
    if (parameter["requires_grad"] == false) frozen.insert(parameter["name"]);
  }
  CHECK(frozen == std::set<std::string>{"token_embedding.weight", "blocks.0.norm1.bias"});
  std::set<std::string> recomputed;
  for (const nlohmann::json& line : read_json_lines(scratch.path("run") / "rank2.events.jsonl")) {
    if (line["ev"] == "span" && line["kind"] == "recompute") recomputed.insert(line["module"]);
    CHECK((line["ev"] != "grad" || frozen.count(line["parameter"]) == 0));
  }
  CHECK(recomputed.count("blocks.0") == 1);
  CHECK(recomputed.count("blocks.2.mlp.down") == 1);
  CHECK(recomputed.count("final_norm") == 0);

  // the same bits without recomputation, as threads
  REQUIRE(run_zerolab(common + " -n 3").status == 0);
  const nlohmann::json without = read_json(scratch.path("run") / "summary.json");
  for (const std::size_t step : {0U, 1U}) {
    CHECK(without["steps"][step]["param_hash"] == summary["steps"][step]["param_hash"]);
  }
}

TEST_CASE("a failed comparison tells where it failed, and its folder can be used again") {
  const Scratch scratch;
  const std::string compare =
      "compare -n 2 --model mlp-small --steps 1 --out " + scratch.arg("run");
  CHECK(run_zerolab(compare + " --device-memory 1MiB").status == 3);
  CHECK(read_json(scratch.path("run") / "error.json")["code"] == "ZL301");
  // An input that is refused later leaves what is in the folder alone.
  CHECK(run_zerolab(compare + " --data /nowhere").status == 2);
  CHECK(read_json(scratch.path("run") / "error.json")["code"] == "ZL301");
  CHECK(run_zerolab(compare).status == 0);
  CHECK(!std::filesystem::exists(scratch.path("run") / "error.json"));
}

TEST_CASE(
    "a loss that is not finite ends the run with status 5 on all ranks, after it was recorded") {
  const Scratch scratch;
  for (const int stage : {0, 3}) {
    const Outcome outcome = mpirun_zerolab(
        3, fmt::format("train --stage {} --model mlp-small --learning-rate 1e30 --steps 5 --out {}",
                       stage, scratch.arg("run")));
    INFO(outcome.all());
    CHECK(outcome.status == 5);
    CHECK(outcome.count("ZL502") == 1);
    json last_step;
    for (const json& event : read_json_lines(scratch.path("run") / "rank2.events.jsonl")) {
      if (event["ev"] == "step") last_step = event;
    }
    CHECK((last_step.at("loss").is_null() || last_step.at("grad_norm").is_null()));
  }
}

TEST_CASE("doctor says what there is, with status 0") {
  for (const Outcome& outcome : {run_zerolab("doctor"), mpirun_zerolab(2, "doctor")}) {
    INFO(outcome.all());
    CHECK(outcome.status == 0);
    CHECK(outcome.count("oneDNN") >= 1);
    CHECK(outcome.count("MPICH") >= 1);
  }
}
