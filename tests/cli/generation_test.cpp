#include <fmt/format.h>

#include "tests/cli/command.hpp"
#include "tests/support/catch.hpp"

using namespace zerolab::test;
using nlohmann::json;

namespace {

std::string generating(int stage, const Scratch& scratch, const std::string& more) {
  return fmt::format(
      "train --stage {} --model gpt-nano --micro-batch 1 --steps 2 --log-level steps "
      "--out {} --generate 30 {}",
      stage, scratch.arg("run"), more);
}

/// The block that a heading begins, up to the empty line behind it.
std::string block(const std::string& out, const std::string& heading) {
  const auto begin = out.find(heading);
  return begin == std::string::npos ? "" : out.substr(begin, out.find("\n\n", begin) - begin);
}

/// Every stage and way to run it makes this of the same text.
std::string json_text(const json& generations) {
  std::string text;
  for (const json& generation : generations) text += generation.dump() + '\n';
  return text;
}

}  // namespace

TEST_CASE("texts are printed once, as they come, and the last one below the tables") {
  const Scratch scratch;
  std::string last;
  for (const bool processes : {true, false}) {
    for (const int stage : {0, 3}) {
      const std::string arguments =
          generating(stage, scratch, "--generate-every 1 --prompt 'The GNU ' --top-k 40 --seed 3");
      const Outcome outcome =
          processes ? mpirun_zerolab(4, arguments) : run_zerolab(arguments + " -n 4");
      INFO(outcome.all());
      REQUIRE(outcome.status == 0);
      CHECK(outcome.count("after step 1: 30 bytes, temperature 0.8, top-k 40, seed 3\n") == 1);
      CHECK(outcome.count("after step 2: 30 bytes, temperature 0.8, top-k 40, seed 3\n") == 1);
      CHECK(outcome.count("\n > The GNU \n |         ") == 2);
      const std::string& out = outcome.out;
      CHECK(out.find("after step 1: 30 bytes") < out.find("parameter hash"));
      CHECK(out.find("after step 2: 30 bytes") > out.find("tokens/s"));
      CHECK(out.find("after step 2: 30 bytes") < out.find("run folder: "));
      if (last.empty()) last = block(out, " after step 2: 30 bytes");
      CHECK(block(out, " after step 2: 30 bytes") == last);
    }
  }
}

TEST_CASE("the result as JSON and summary.json have the bytes of every text, and its traffic") {
  const Scratch scratch;
  std::string expected;
  for (const int stage : {0, 3}) {
    const Outcome outcome = mpirun_zerolab(
        3, generating(stage, scratch,
                      "--json --temperature 50 --generate-every 1 --prompt \"$(printf "
                      "'\\303\\251\\n\\033\\377 ')\""));
    INFO(outcome.all());
    REQUIRE(outcome.status == 0);
    const json result = json::parse(outcome.out);
    CHECK(result == read_json(scratch.path("run") / "summary.json"));
    const json& generations = result["generations"];
    REQUIRE(generations.size() == 2);
    for (const std::size_t i : {0U, 1U}) {
      CHECK(generations[i]["step"] == i + 1);
      CHECK(generations[i]["prompt"] == "Ã©\n\x1bÿ ");
      // A byte is a character, and at this temperature half of them are not ASCII.
      const auto text = generations[i]["text"].get<std::string>();
      CHECK(text.size() > 35);
      CHECK(std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }) ==
            30);
    }
    CHECK(result["generation_comm"].empty() == (stage == 0));
    if (expected.empty()) expected = json_text(generations);
    CHECK(json_text(generations) == expected);

    const json run = read_json(scratch.path("run") / "run.json");
    CHECK(run["generate"] == json{{"count", 30},
                                  {"prompt", "Ã©\n\x1bÿ "},
                                  {"temperature", 50.0},
                                  {"top_k", 0},
                                  {"seed", 1},
                                  {"every", 1}});
  }
}

TEST_CASE("a run that generates has the losses and hashes of one that does not") {
  const Scratch scratch;
  const auto steps = [&](const std::string& more) {
    const std::string common = "train -n 2 --stage 3 --model mlp-small --steps 6 --out ";
    REQUIRE(run_zerolab(common + scratch.arg("run") + more).status == 0);
    json result = read_json(scratch.path("run") / "summary.json")["steps"];
    for (json& step : result) step.erase("seconds");
    return result;
  };
  CHECK(steps(" --generate 40 --generate-every 2") == steps(""));
}

TEST_CASE("ranks that were told different texts are refused by name") {
  const Scratch scratch;
  const std::string common = fmt::format("{} train --model mlp-small --steps 1 --out {} ",
                                         ZEROLAB_PROGRAM, scratch.arg("run"));
  const Outcome outcome = run_command(
      fmt::format("{0} -n 1 {1} --generate 5 --prompt a : -n 1 {1} --generate 6 --prompt a : "
                  "-n 1 {1} --generate 5 --prompt b",
                  ZEROLAB_MPIRUN, common));
  INFO(outcome.all());
  CHECK(outcome.status == 2);
  CHECK(outcome.count("ZL210") == 1);
  CHECK(outcome.count("--generate: 5 on rank 0, 6 on rank 1") == 1);
  CHECK(outcome.count("--prompt: \"a\" on rank 0, \"b\" on rank 2") == 1);
}
