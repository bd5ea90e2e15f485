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

TEST_CASE("generate writes what train would have, on any number of ranks, as processes too") {
  const Scratch scratch;
  const std::string sampling = "--prompt 'The GNU ' --top-k 40 --temperature 0.7 ";
  const Outcome trained = run_zerolab(
      generating(2, scratch, "-n 3 --seed 3 --bf16 " + sampling + "--save " + scratch.arg("ck")));
  INFO(trained.all());
  REQUIRE(trained.status == 0);
  const std::string text = block(trained.out, " after step 2: 30 bytes");
  REQUIRE(text != "");
  const std::string generate = "generate --bytes 30 " + sampling + "--resume ";
  const std::vector<Outcome> outcomes{
      run_zerolab(generate + scratch.arg("ck")),
      mpirun_zerolab(3, generate + scratch.arg("ck") + " --stage 3"),
      run_zerolab(generate + scratch.arg("ck:global_step2") + " -n 1 --stage 0")};
  for (const Outcome& outcome : outcomes) {
    INFO(outcome.all());
    CHECK(outcome.status == 0);
    CHECK(outcome.err == "");
    CHECK(outcome.count(text) == 1);
    CHECK(outcome.count("gpt-nano, 170,560 parameters in bf16, ") == 1);
  }
  CHECK(outcomes[0].count("\nranks   4, stage 2: 333 KiB of weights on each\n") == 1);
  CHECK(outcomes[1].count("\nranks   3, stage 3: 111 KiB of weights on each\n") == 1);
  CHECK(run_zerolab(generate + scratch.arg("ck") + " --seed 4").count(text) == 0);
}

TEST_CASE("generate prints as JSON what it wrote, and all that decides it") {
  const Scratch scratch;
  const Outcome trained = mpirun_zerolab(
      2, generating(3, scratch, "--json --seed 7 --prompt é --save " + scratch.arg("ck")));
  INFO(trained.all());
  REQUIRE(trained.status == 0);
  const Outcome outcome =
      run_zerolab("generate --json -n 3 --bytes 30 --prompt é --resume " + scratch.arg("ck"));
  INFO(outcome.all());
  REQUIRE(outcome.status == 0);
  json expected = json::parse(trained.out)["generations"][0];
  expected.update({{"checkpoint", scratch.path("ck/global_step2").string()},
                   {"count", 30},
                   {"temperature", 0.8},
                   {"top_k", 0},
                   {"seed", 7}});
  CHECK(json::parse(outcome.out) == expected);
}

TEST_CASE("what generate cannot do is said once, with the way out") {
  const Scratch scratch;
  const auto refuses = [](const std::string& arguments, int status, const std::string& why) {
    for (const Outcome& outcome :
         {run_zerolab("generate -n 2 " + arguments), mpirun_zerolab(2, "generate " + arguments)}) {
      INFO(arguments << "\n" << outcome.all());
      CHECK(outcome.status == status);
      CHECK(outcome.out == "");
      CHECK(outcome.count(why) == 1);
      CHECK(outcome.count("way out: ") == 1);
    }
  };
  refuses("", 2, "--resume is required");
  refuses("--resume " + scratch.arg("none"), 6, "ZL602: there is no folder");
  scratch.write("tiny.json", R"({"name": "tiny", "type": "mlp", "vocab_size": 128,
      "sequence_length": 4, "embedding_size": 8, "hidden_sizes": [16]})");
  scratch.write("text", std::string(3000, 'a'));
  REQUIRE(run_zerolab(fmt::format("train -n 1 --steps 1 --model {} --data {} --out {} --save {}",
                                  scratch.arg("tiny.json"), scratch.arg("text"), scratch.arg("run"),
                                  scratch.arg("ck")))
              .status == 0);
  const std::string ck = "--resume " + scratch.arg("ck");
  refuses("--resume " + scratch.arg("ck:global_step7"), 6, "ZL602: ");
  refuses(ck + " --prompt é", 2, "the prompt has the byte 195 (\\xc3) at position 0");
  refuses(ck + " --bytes 0", 2, "--bytes");
  refuses(ck + " --temperature -1", 2, "--temperature -1 is not a number from 0");
  refuses(ck + " --show memory", 2, "--show is not known");
  refuses(ck + " --device-memory 1KiB", 3, "ZL301");
}

TEST_CASE("generate takes a checkpoint whose batch its ranks could not train with") {
  const Scratch scratch;
  scratch.write("ds.json", R"({"train_batch_size": 6, "gradient_accumulation_steps": 2})");
  REQUIRE(run_zerolab(generating(1, scratch,
                                 fmt::format("-n 3 --config {} --save {}", scratch.arg("ds.json"),
                                             scratch.arg("ck"))))
              .status == 0);
  const Outcome outcome = run_zerolab("generate -n 4 --bytes 5 --resume " + scratch.arg("ck"));
  INFO(outcome.all());
  CHECK(outcome.status == 0);
}
