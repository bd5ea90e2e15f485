#include <fmt/format.h>

#include <fstream>

#include "stages/base/read_file.hpp"
#include "tests/cli/command.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/error_samples.hpp"

using namespace zerolab;
using namespace zerolab::test;
using nlohmann::json;

namespace {

/// The line that a run says last on the error stream, on one line and without its way out.
std::string error_of(const Outcome& outcome) {
  std::string text = outcome.err.substr(0, outcome.err.find("\n  way out: "));
  text.erase(0, text.find("ZL"));
  return text;
}

/// Replaces the first `from` in a file; returns its line.
int replace_in(const std::filesystem::path& file, const std::string& from, const std::string& to) {
  std::string text = read_file(file).value();
  const std::size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  const auto line =
      1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n');
  text.replace(at, from.size(), to);
  std::ofstream(file) << text;
  return static_cast<int>(line);
}

Outcome train(const Scratch& scratch, const std::string& arguments) {
  return run_zerolab(fmt::format("train -n 3 --micro-batch 1 --steps 2 --out {} {}",
                                 scratch.arg("run"), arguments));
}

}  // namespace

TEST_CASE("verify finds nothing in runs of every stage, type and kind") {
  for (const int stage : {0, 1, 2, 3}) {
    for (const std::string& settings :
         {std::string("--generate 2 --validate-every 1"),
          std::string("--model mlp-small --bf16 --gradient-accumulation-steps 3"),
          std::string("--model mlp-small --fp16 --check-collectives --device-memory 64MiB"),
          std::string("--activation-checkpointing --freeze blocks.0")}) {
      const Scratch scratch;
      const Outcome trained = train(scratch, fmt::format("--stage {} {}", stage, settings));
      INFO(settings << " in stage " << stage << "\n" << trained.all());
      REQUIRE(trained.status == 0);
      const Outcome verified = run_zerolab("verify " + scratch.arg("run"));
      INFO(verified.all());
      CHECK(verified.status == 0);
      CHECK(verified.err.empty());
      CHECK(verified.count(" ok\n") == 7);
      CHECK(verified.count("3 rank(s), 2 step(s)") == 1);
    }
  }
}

TEST_CASE("verify finds nothing in runs that save, go on elsewhere, or begin with given weights") {
  const Scratch scratch;
  scratch.write("ds.json", R"({"zero_optimization":
      {"stage3_gather_16bit_weights_on_model_save": true}})");
  const auto good = [&](const Outcome& run) {
    INFO(run.all());
    REQUIRE(run.status == 0);
    const Outcome verified = run_zerolab("verify " + scratch.arg("run"));
    INFO(verified.all());
    CHECK(verified.status == 0);
  };
  const std::string out = " --config " + scratch.arg("ds.json") + " --out " + scratch.arg("run");
  for (const int stage : {0, 3}) {
    good(
        run_zerolab(fmt::format("train -n 3 --model mlp-small --micro-batch 1 --bf16 --steps 3 "
                                "--generate 2 --stage {} --save {} --save-every 2 "
                                "--save-model {} {}",
                                stage, scratch.arg("ck"), scratch.arg("w"), out)));
    good(
        run_zerolab(fmt::format("train -n 4 --stage {} --steps 5 --resume {} --save {} "
                                "--check-collectives {}",
                                3 - stage, scratch.arg("ck"), scratch.arg("ck"), out)));
    good(run_zerolab(fmt::format("import {} -n 2 --micro-batch 1 --steps 1 --stage {} {}",
                                 scratch.arg("w"), stage, out)));
  }
  // A step later than run.json says.
  good(run_zerolab("train -n 2 --steps 7 --resume " + scratch.arg("ck") + out));
  replace_in(scratch.path("run") / "run.json", R"("step": 5)", R"("step": 4)");
  const Outcome verified = run_zerolab("verify " + scratch.arg("run"));
  CHECK(verified.status == 4);
  CHECK(verified.count("\n   step 6 ends as number 5\n") == 1);
}

TEST_CASE("verify judges every stage of a comparison, of processes too") {
  const Scratch scratch;
  REQUIRE(
      mpirun_zerolab(3, "compare --model mlp-small --steps 2 --out " + scratch.arg("run")).status ==
      0);
  const Outcome verified = run_zerolab("verify " + scratch.arg("run"));
  INFO(verified.all());
  CHECK(verified.status == 0);
  CHECK(verified.count(" ok\n") == 4 * 7);
  for (const int stage : {0, 1, 2, 3}) CHECK(verified.count(fmt::format("/stage{}: ", stage)) == 1);
}

TEST_CASE("verify ends with 4 when states are wrong, and says where") {
  const Scratch scratch;
  REQUIRE(train(scratch, "--model mlp-small --stage 3").status == 0);
  const int line = replace_in(scratch.path("run") / "rank1.events.jsonl",
                              R"("from":"AVAILABLE","to":"NOT_AVAILABLE","cause":"release")",
                              R"("from":"INFLIGHT","to":"NOT_AVAILABLE","cause":"release")");
  const Outcome verified = run_zerolab("verify " + scratch.arg("run"));
  INFO(verified.all());
  CHECK(verified.status == 4);
  CHECK(verified.count(fmt::format("illegal-transition  rank1.events.jsonl:{}", line)) == 1);
  CHECK(verified.count("\n states       missing-transition, illegal-transition\n") == 1);
  CHECK(verified.count(" ok\n") == 6);
  CHECK(reads_like(error_of(verified), sample_of(Code::log_states)));
}

TEST_CASE("verify ends with 7 when only collectives are wrong, and with 4 when both are") {
  const Scratch scratch;
  REQUIRE(train(scratch, "--model mlp-small --stage 2").status == 0);
  const std::filesystem::path log = scratch.path("run") / "rank2.events.jsonl";
  const int line = replace_in(log, R"("owner":"parameter hash")", R"("owner":"something else")");
  const Outcome verified = run_zerolab("verify " + scratch.arg("run"));
  INFO(verified.all());
  CHECK(verified.status == 7);
  CHECK(verified.count(fmt::format("collective-order  rank2.events.jsonl:{}", line)) == 1);
  CHECK(reads_like(error_of(verified), sample_of(Code::log_collectives)));

  replace_in(log, R"("rank":2)", R"("rank":1)");
  CHECK(run_zerolab("verify " + scratch.arg("run")).status == 4);
}

TEST_CASE("verify prints the same as JSON") {
  const Scratch scratch;
  REQUIRE(train(scratch, "--model mlp-small --stage 1").status == 0);
  const int line =
      replace_in(scratch.path("run") / "rank0.events.jsonl", R"("rank":0)", R"("rank":5)");
  const Outcome verified = run_zerolab("verify --json " + scratch.arg("run"));
  CHECK(verified.status == 4);
  CHECK(verified.err.empty());
  const json result = json::parse(verified.out);
  CHECK(result["error"]["code"] == "ZL413");
  CHECK(result["error"]["exit_status"] == 4);
  const json runs = result["runs"];
  REQUIRE(runs.size() == 1);
  CHECK(runs[0]["ranks"] == 3);
  CHECK(runs[0]["steps"] == 2);
  CHECK(runs[0]["events"] > 1000);
  CHECK(runs[0]["notes"] == json::array());
  CHECK(runs[0]["violations"] == json::parse(fmt::format(
                                     R"([{{"kind": "other-rank", "check": "log",
                                           "file": "rank0.events.jsonl", "line": {},
                                           "text": "an event of rank 5", "more": 0}}])",
                                     line)));
}

TEST_CASE("verify judges what a failed run has left, and says that it failed") {
  for (const std::string& failure :
       {std::string("--break unregistered-head"), std::string("--device-memory 1600KiB"),
        std::string("--learning-rate 1e30")}) {
    const Scratch scratch;
    REQUIRE(run_zerolab(fmt::format("train -n 3 --stage 3 --model gpt-nano --steps 4 {} --out {}",
                                    failure, scratch.arg("run")))
                .status > 2);
    const Outcome verified = run_zerolab("verify " + scratch.arg("run"));
    INFO(failure << "\n" << verified.all());
    CHECK(verified.status == 0);
    CHECK(verified.count("note  the run ended with ZL") == 1);
  }
}

TEST_CASE("verify refuses what it cannot judge with status 2, and says why") {
  const Scratch scratch;
  const auto refuses = [](const std::string& arguments, const std::string& why) {
    const Outcome verified = run_zerolab("verify " + arguments);
    INFO(verified.all());
    CHECK(verified.status == 2);
    CHECK(verified.out.empty());
    CHECK(verified.count(why) == 1);
    CHECK(verified.count("way out: ") == 1);
  };
  refuses("", "RUN is required");
  refuses(scratch.arg("none"), "is not there");
  refuses("--jsn x", "--jsn is not known; did you mean --json?");
  scratch.write("file", "");
  refuses(scratch.arg("file"), "is not a folder");
  scratch.write("empty/run.json", "");
  refuses(scratch.arg("empty"), "run.json is not JSON");
  for (const std::string level : {"steps", "off"}) {
    REQUIRE(train(scratch, "--model mlp-small --log-level " + level).status == 0);
    refuses(scratch.arg("run"), "so there is nothing to replay");
  }
  CHECK(mpirun_zerolab(2, "verify " + scratch.arg("run")).count("ZL201: verify under mpirun") == 1);
}
