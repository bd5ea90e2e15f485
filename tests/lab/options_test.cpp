#include "lab/options.hpp"

#include <set>

#include "stages/base/error.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/thrown.hpp"

namespace zerolab {
namespace {

RunOptions parse(const std::vector<std::string>& arguments) {
  return parse_command_line(arguments, false).options;
}

void check_refused(const std::vector<std::string>& arguments, std::string_view part,
                   bool under_mpirun = false) {
  const auto error = thrown_by([&] { parse_command_line(arguments, under_mpirun); });
  INFO(part);
  REQUIRE(error);
  INFO(error->what());
  CHECK(error->code() == Code::usage);
  CHECK(error->exit_status() == 2);
  CHECK(contains(error->what(), part));
  CHECK(error->way_out() != "");
}

TEST_CASE("a subcommand alone is enough", "[lab]") {
  const RunOptions train = parse({"train"});
  CHECK(train.command == Command::train);
  CHECK(train.settings.empty());
  CHECK_FALSE(train.ranks);
  CHECK_FALSE(train.data);
  CHECK(train.device_memory == Ledger::kUnlimited);
  CHECK(train.log_level == LogLevel::events);
  const RunOptions compare = parse({"compare"});
  CHECK(compare.stages == std::vector<int>{0, 1, 2, 3});
  CHECK(compare.out != train.out);
  CHECK_FALSE(parse_command_line({"train"}, false).alone);
  CHECK(parse_command_line({"doctor"}, false).alone);
}

TEST_CASE("every flag reaches its value", "[lab]") {
  const RunOptions options = parse({"compare",
                                    "--model",
                                    "mlp-small",
                                    "--data",
                                    "text",
                                    "--stages",
                                    "0,3",
                                    "--steps",
                                    "7",
                                    "--seed",
                                    "9",
                                    "--config",
                                    "ds.json",
                                    "--out",
                                    "here",
                                    "--device-memory",
                                    "64MiB",
                                    "--threads",
                                    "2",
                                    "-n",
                                    "3",
                                    "--plain",
                                    "--show",
                                    "comm,memory",
                                    "--log-level",
                                    "steps",
                                    "--validate-every",
                                    "5",
                                    "--break",
                                    "unregistered-head"});
  CHECK(options.model == "mlp-small");
  CHECK(options.data == "text");
  CHECK(options.stages == std::vector<int>{0, 3});
  CHECK(options.steps == 7);
  CHECK(options.seed == 9);
  CHECK(options.config == "ds.json");
  CHECK(options.out == "here");
  CHECK(options.device_memory == 64 << 20);
  CHECK(options.threads == 2);
  CHECK(options.ranks == 3);
  CHECK_FALSE(options.json);
  CHECK(options.plain);
  CHECK_FALSE(options.show.transitions);
  CHECK(options.show.comm);
  CHECK(options.show.memory);
  CHECK(options.log_level == LogLevel::steps);
  CHECK(options.validate_every == 5);
  CHECK(options.broken == "unregistered-head");
  CHECK(parse({"train", "--deepspeed_config", "ds.json"}).config == "ds.json");
  CHECK(parse({"train", "--json"}).json);
}

TEST_CASE("flags that are settings keep their own name as the source", "[lab]") {
  const RunOptions options =
      parse({"train", "--stage", "2", "--micro-batch", "4", "--gradient-accumulation-steps", "3",
             "--learning-rate", "1e-3", "--reduce-bucket-size", "5e7", "--no-overlap-comm"});
  std::set<std::string> keys;
  for (const Given& given : options.settings) {
    keys.insert(given.key);
    CHECK(given.source.rfind("--", 0) == 0);
  }
  CHECK(keys == std::set<std::string>{"zero_optimization.stage", "train_micro_batch_size_per_gpu",
                                      "gradient_accumulation_steps", "optimizer.params.lr",
                                      "zero_optimization.reduce_bucket_size",
                                      "zero_optimization.overlap_comm"});
  ResolveInput input;
  input.flags = options.settings;
  const Settings settings = resolve(input).settings;
  CHECK(settings.zero.stage == 2);
  CHECK(settings.zero.reduce_bucket_size == 50'000'000);
  CHECK_FALSE(settings.zero.overlap_comm);

  input.flags = parse({"train", "--micro-batch", "1", "--overlap-comm"}).settings;
  CHECK(resolve(input).settings.zero.overlap_comm);
  input.flags = parse({"train", "--micro-batch", "four"}).settings;
  const auto error = thrown_by([&] { resolve(input); });
  REQUIRE(error);
  CHECK(contains(error->what(), "--micro-batch: "));
}

TEST_CASE("what is unknown is refused with the nearest name", "[lab]") {
  check_refused({"trian"}, "trian is not a subcommand; did you mean train?");
  check_refused({"train", "--stpes", "5"}, "train --stpes is not known; did you mean --steps?");
  check_refused({"train", "--stpes=5"}, "did you mean --steps?");
  check_refused({"compare", "--stage", "2"}, "did you mean --stages?");
  check_refused({"train", "leftover"}, "leftover is not known");
  check_refused({}, "subcommand");
}

TEST_CASE("values that cannot be are refused with their flag", "[lab]") {
  check_refused({"train", "--steps", "0"}, "--steps");
  check_refused({"train", "--steps", "many"}, "--steps");
  check_refused({"train", "--steps"}, "--steps");
  check_refused({"train", "--overlap-comm", "--no-overlap-comm"}, "--no-overlap-comm");
  check_refused({"train", "--seed", "-1"}, "--seed");
  check_refused({"compare", "--stages", "0,4"}, "--stages");
  check_refused({"compare", "--stages", "1,1"}, "names stage 1 twice");
  check_refused({"train", "-n", "0"}, "--ranks: 0 is not a whole number from 1");
  check_refused({"train", "--show", "everything"}, "--show");
  check_refused({"train", "--show", "comm", "--json"}, "--show contradicts --json");
  check_refused({"train", "--log-level", "loud"}, "--log-level");
  check_refused({"train", "--break", "everything"}, "--break");
  check_refused({"train", "--device-memory", "64M"}, "M could be MB");
}

TEST_CASE("flags of generated text reach their values, and their seed is that of the run",
          "[lab]") {
  const RunOptions options =
      parse({"train", "--generate", "200", "--generate-every", "10", "--prompt", "The [GNU] ",
             "--temperature", "1.5", "--top-k", "40", "--seed", "9"});
  REQUIRE(options.generate);
  CHECK(options.generate->count == 200);
  CHECK(options.generate->prompt == "The [GNU] ");
  CHECK(options.generate->temperature == 1.5);
  CHECK(options.generate->top_k == 40);
  CHECK(options.generate->seed == 9);
  CHECK(options.generate_every == 10);

  const RunOptions plain = parse({"train", "--generate", "1"});
  REQUIRE(plain.generate);
  CHECK(plain.generate->prompt == "");
  CHECK(plain.generate->temperature == 0.8);
  CHECK(plain.generate->top_k == 0);
  CHECK(plain.generate_every == 0);
  CHECK_FALSE(parse({"train"}).generate);
  CHECK(parse({"train", "--generate", "1", "--prompt", ""}).generate->prompt == "");
  CHECK(parse({"train", "--generate", "1", "--prompt=--steps"}).generate->prompt == "--steps");
  CHECK(parse({"train", "--generate", "1", "--prompt", "a\\n\n\xFF"}).generate->prompt ==
        "a\\n\n\xFF");
  for (const char* zero : {"0", "0.0", "0e5"}) {
    CHECK(parse({"train", "--generate", "1", "--temperature", zero}).generate->temperature == 0);
  }
}

TEST_CASE("a text that cannot be generated as asked is refused with its flag", "[lab]") {
  for (const char* count : {"0", "-1", "1.5", "many", ""}) {
    check_refused({"train", "--generate", count}, "--generate");
  }
  for (const char* temperature : {"-0.5", "nan", "inf", "-inf", "1e999", "warm", "1.0x", ""}) {
    check_refused({"train", "--generate", "9", std::string("--temperature=") + temperature},
                  "--temperature");
  }
  check_refused({"train", "--generate", "9", "--top-k", "-1"}, "--top-k");
  check_refused({"train", "--generate", "9", "--generate-every", "often"}, "--generate-every");
  for (const std::string flag : {"--prompt", "--temperature", "--top-k", "--generate-every"}) {
    check_refused({"train", flag, "1"}, flag + " without --generate");
    check_refused({"compare", flag, "1"}, "compare " + flag + " is not known");
  }
  check_refused({"train", "--prompt", ""}, "--prompt without --generate");
  check_refused({"compare", "--generate", "9"}, "compare --generate is not known");
}

TEST_CASE("flags of checkpoints reach their values", "[lab]") {
  const RunOptions options =
      parse({"train", "--save", "ck", "--save-every", "10", "--keep", "3", "--resume",
             "old:global_step4", "--save-model", "model.safetensors"});
  CHECK(options.saving.folder == "ck");
  CHECK(options.saving.every == 10);
  CHECK(options.saving.keep == 3);
  CHECK(options.saving.weights_file == "model.safetensors");
  CHECK(options.resume == "old:global_step4");
  CHECK(parse({"train", "--save", "ck", "--resume", "auto"}).resume == kAuto);
  CHECK(parse({"train", "--save", "ck", "--break", "shard-lost"}).broken == "shard-lost");

  const RunOptions plain = parse({"train", "--save", "ck"});
  CHECK(plain.saving.every == 0);
  CHECK(plain.saving.keep == 0);
  CHECK_FALSE(plain.saving.weights_file);
  CHECK_FALSE(plain.resume);
  CHECK_FALSE(plain.model);  // the checkpoint's, where there is one
  CHECK_FALSE(plain.seed);
  CHECK_FALSE(parse({"train"}).saving.folder);

  const RunOptions imported = parse({"import", "gpt2.safetensors", "--save", "ck", "--steps", "7"});
  CHECK(imported.command == Command::import);
  CHECK(imported.weights == "gpt2.safetensors");
  CHECK(imported.saving.folder == "ck");
  CHECK(imported.steps == 7);
  CHECK_FALSE(imported.resume);
}

TEST_CASE("generate has its checkpoint, its text and where it runs", "[lab]") {
  const RunOptions options = parse(
      {"generate", "--resume",        "ck",   "--bytes", "99", "--prompt", "The ", "--temperature",
       "0",        "--top-k",         "5",    "--seed",  "8",  "--stage",  "3",    "-n",
       "3",        "--device-memory", "1MiB", "--json"});
  CHECK(options.command == Command::generate);
  CHECK(options.resume == "ck");
  REQUIRE(options.generate);
  CHECK(options.generate->count == 99);
  CHECK(options.generate->prompt == "The ");
  CHECK(options.generate->temperature == 0);
  CHECK(options.generate->top_k == 5);
  CHECK(options.generate->seed == 8);
  CHECK(options.settings.at(0).key == "zero_optimization.stage");
  CHECK(options.ranks == 3);
  CHECK(options.device_memory == 1 << 20);
  CHECK(options.json);
  const RunOptions plain = parse({"generate", "--resume", "ck"});
  REQUIRE(plain.generate);
  CHECK(plain.generate->count > 0);
  CHECK_FALSE(plain.seed);
}

TEST_CASE("what cannot be saved or resumed as asked is refused with its flag", "[lab]") {
  for (const std::vector<std::string>& flags :
       {std::vector<std::string>{"--save-every", "2"}, {"--keep", "2"}, {"--resume", "auto"}}) {
    std::vector<std::string> arguments{"train"};
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    const std::string flag = flags[1] == "auto" ? "--resume auto" : flags[0];
    check_refused(arguments, flag + " without --save: there is no folder of checkpoints");
    arguments.insert(arguments.end(), {"--save", "ck"});
    CHECK(parse(arguments).saving.folder == "ck");
  }
  for (const std::string flag : {"--save-every", "--keep"}) {
    for (const char* count : {"0", "-1", "1.5", "many", ""}) {
      check_refused({"train", "--save", "ck", flag, count}, flag);
    }
  }
  check_refused({"train", "--save"}, "--save");
  check_refused({"train", "--break", "shard-lost"}, "--break shard-lost without --save");
  check_refused({"compare", "--break", "own-tag"}, "--break own-tag without --save");
  for (const std::string flag : {"--save", "--resume", "--save-model"}) {
    check_refused({"compare", flag, "ck"}, "compare " + flag + " is not known");
  }
  check_refused({"import", "weights.safetensors", "--resume", "ck"},
                "import --resume is not known");
  check_refused({"import"}, "FILE");
  check_refused({"generate"}, "--resume");
  check_refused({"generate", "--resume", "ck", "--bytes", "0"}, "--bytes");
  check_refused({"generate", "--resume", "ck", "--steps", "3"}, "generate --steps is not known");
  check_refused({"generate", "--resume", "ck", "--generate", "3"},
                "generate --generate is not known");
  check_refused({"generate", "--resume", "auto"}, "--resume auto");
}

TEST_CASE("Option -n under mpirun is an error, because mpirun has decided", "[lab]") {
  check_refused({"compare", "-n", "4"}, "-n 4 under mpirun", true);
  CHECK(parse_command_line({"compare"}, true).options.command == Command::compare);
}

TEST_CASE("help is a text, with examples and exit codes", "[lab]") {
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"--help"}, {"train", "--help"}, {"compare", "-h"}}) {
    const Invocation invocation = parse_command_line(arguments, false);
    REQUIRE(invocation.text);
    CHECK(contains(*invocation.text, "Examples:"));
    CHECK(contains(*invocation.text, "Exit codes:"));
  }
  CHECK(contains(*parse_command_line({"--version"}, false).text, "zerolab "));
}

}  // namespace
}  // namespace zerolab
