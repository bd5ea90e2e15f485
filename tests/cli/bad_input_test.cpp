#include <fmt/format.h>
#include <unistd.h>

#include "tests/cli/command.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/error_samples.hpp"

using namespace zerolab;
using namespace zerolab::test;

namespace {

struct Bad {
  std::string arguments;
  std::string code;
  std::vector<std::string> mentions;
};

void check_refused(const Bad& bad) {
  for (const bool processes : {true, false}) {
    const Outcome outcome =
        processes ? mpirun_zerolab(4, bad.arguments) : run_zerolab(bad.arguments);
    INFO(bad.arguments << (processes ? " (mpirun)\n" : " (threads)\n") << outcome.all());
    CHECK(outcome.status == 2);
    CHECK(outcome.count("zerolab: ZL") == 1);
    CHECK(outcome.count(bad.code) == 1);
    CHECK(outcome.count("way out") >= 1);
    for (const std::string& text : bad.mentions) CHECK(outcome.count(text) >= 1);
  }
}

}  // namespace

TEST_CASE("data that cannot be trained on is refused once, with what to do") {
  const Scratch scratch;
  scratch.write("empty", "");
  scratch.write("short", "abc");
  std::filesystem::create_directory(scratch.path("no files"));
  const std::string out = " --out " + scratch.arg("run");
  check_refused({"train --data /nowhere/text" + out, "ZL207", {"/nowhere/text"}});
  check_refused({"train --data " + scratch.arg("empty") + out, "ZL207", {"empty"}});
  check_refused({"train --data " + scratch.arg("short") + out, "ZL207", {"short"}});
  check_refused({"train --data " + scratch.arg("no files") + out, "ZL207", {"no files"}});
}

TEST_CASE("a model or stage that there is not is refused with the ones there are") {
  const Scratch scratch;
  scratch.write("bad.json", "{\n  \"type\": \"transformer\",\n  \"num_layers\" 3\n}\n");
  scratch.write("unknown.json", R"({"type": "mlp", "sequence_length": 4, "hiden_sizes": [3]})");
  const std::string out = " --out " + scratch.arg("run");
  check_refused({"train --model gpt-nan" + out, "ZL209", {"gpt-nan", "gpt-nano", "mlp-small"}});
  check_refused({"train --stage 4" + out, "ZL202", {"zero_optimization.stage"}});
  check_refused({"compare --stages 0,5" + out, "ZL201", {"--stages"}});
  check_refused({"train --model " + scratch.arg("bad.json") + out, "ZL203", {"bad.json:3:16"}});
  check_refused({"train --model " + scratch.arg("unknown.json") + out,
                 "ZL209",
                 {"hiden_sizes", "hidden_sizes"}});
}

TEST_CASE("a configuration that cannot be is refused: syntax, keys, batch sizes") {
  const Scratch scratch;
  scratch.write("syntax.json", "{\n  \"train_batch_size\": 8,\n}\n");
  scratch.write("key.json", R"({"zero_optimization": {"stag": 2}})");
  scratch.write("batch.json",
                R"({"train_batch_size": 9, "train_micro_batch_size_per_gpu": 2,
                    "gradient_accumulation_steps": 2})");
  const std::string common = "train --out " + scratch.arg("run") + " --config ";
  check_refused({common + scratch.arg("syntax.json"), "ZL203", {"syntax.json:3:1"}});
  check_refused({common + scratch.arg("key.json"), "ZL204", {"stag", "stage"}});
  check_refused(
      {common + scratch.arg("batch.json"),
       "ZL205",
       {"train_batch_size", "train_micro_batch_size_per_gpu", "gradient_accumulation_steps"}});
  check_refused({common + "/nowhere.json", "ZL201", {"/nowhere.json"}});
}

TEST_CASE(
    "what is to be frozen, or a leaf, and is not there is refused before anything is printed") {
  const Scratch scratch;
  scratch.write("leaf.json",
                R"({"zero_optimization": {"leaf_module": {"classes": "TransformerBlok"}}})");
  scratch.write("list.json", R"({"zero_optimization": {"leaf_module": {"names": [3]}}})");
  const std::string out = " --out " + scratch.arg("run");
  check_refused({"train --freeze blok.0" + out, "ZL201", {"blok.0", "blocks.0"}});
  check_refused({"compare --freeze token_embedding,blocks,position_embedding,final_norm" + out,
                 "ZL201",
                 {"nothing to train"}});
  check_refused({"train --config " + scratch.arg("leaf.json") + out,
                 "ZL202",
                 {"TransformerBlok'", "TransformerBlock"}});
  check_refused({"train --config " + scratch.arg("list.json") + out,
                 "ZL202",
                 {"zero_optimization.leaf_module.names", "a list of strings"}});
  CHECK(run_zerolab("train -n 2 --freeze blok.0" + out).out.empty());
}

TEST_CASE("a run folder that holds other things is left alone, an earlier run is replaced") {
  const Scratch scratch;
  std::filesystem::create_directory(scratch.path("mine"));
  scratch.write("mine/thesis.txt", "precious");
  scratch.write("file", "a file");
  check_refused({"train --steps 1 --out " + scratch.arg("mine"), "ZL208", {"thesis.txt"}});
  CHECK(std::filesystem::exists(scratch.path("mine") / "thesis.txt"));
  check_refused({"train --steps 1 --out " + scratch.arg("file"), "ZL208", {"file"}});
  check_refused({"train --steps 1 --out /proc/zerolab", "ZL208", {"/proc/zerolab"}});

  const std::string run = "-n 2 --model mlp-small --steps 1 --out " + scratch.arg("run");
  REQUIRE(run_zerolab("compare " + run).status == 0);
  REQUIRE(run_zerolab("train " + run).status == 0);
  CHECK(std::filesystem::exists(scratch.path("run") / "summary.json"));
  CHECK(!std::filesystem::exists(scratch.path("run") / "compare.json"));
}

TEST_CASE("the command line is refused with the nearest name") {
  check_refused({"train --stagee 2", "ZL201", {"--stage"}});
  check_refused({"trian", "ZL201", {"train"}});
  check_refused({"train --steps nine", "ZL201", {"--steps"}});
  check_refused({"train --device-memory 64Mb2", "ZL201", {"--device-memory"}});
  const Outcome ranks = mpirun_zerolab(2, "train -n 2");
  CHECK(ranks.status == 2);
  CHECK(ranks.count("ZL201") == 1);
  CHECK(ranks.count("mpirun") >= 1);
}

TEST_CASE("a text that cannot be generated as asked is refused, with what to do") {
  const Scratch scratch;
  scratch.write("text", std::string(500, 'A'));
  scratch.write("small.json",
                R"({"type": "mlp", "vocab_size": 100, "sequence_length": 4, "embedding_size": 2,
                    "hidden_sizes": [3]})");
  const std::string train = "train --steps 1 --out " + scratch.arg("run");
  check_refused({train + " --prompt 'The '", "ZL201", {"--prompt without --generate"}});
  check_refused({train + " --generate 5 --temperature=-1", "ZL201", {"--temperature -1"}});
  check_refused({train + " --generate 0", "ZL201", {"--generate: 0"}});
  check_refused({"compare --generate 5", "ZL201", {"compare --generate is not known"}});
  check_refused({train + " --generate 5 --prompt 'AZz' --data " + scratch.arg("text") +
                     " --model " + scratch.arg("small.json"),
                 "ZL201",
                 {"the byte 122 ('z') at position 2", "100 tokens"}});
  CHECK(!std::filesystem::exists(scratch.path("run")));  // all of them before anything is trained
}

TEST_CASE("an MPI that does not hear mpirun is named as docs/errors.md has it, with status 7") {
  const Scratch scratch;
  // What a process finds that mpirun started; MPI itself is not told, and takes it for the only
  // one.
  const Outcome outcome =
      run_command(fmt::format("env PMI_RANK=0 PMI_SIZE=4 {} train --steps 1 --out {}",
                              ZEROLAB_PROGRAM, scratch.arg("run")));
  INFO(outcome.all());
  CHECK(outcome.status == 7);
  CHECK(outcome.count("zerolab: ZL702") == 1);
  CHECK(reads_like(outcome.err.substr(outcome.err.find("ZL702")), sample_of(Code::mpi_singletons)));
}

TEST_CASE("The help comes once and is worth reading") {
  for (const Outcome& outcome : {run_zerolab("--help"), mpirun_zerolab(3, "--help")}) {
    CHECK(outcome.status == 0);
    CHECK(outcome.count("Exit codes") == 1);
    CHECK(outcome.count("compare") >= 1);
  }
  CHECK(run_zerolab("train --help").count("--device-memory") >= 1);
}
