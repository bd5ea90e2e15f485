// merge, import, checkpoint inspect and checkpoint verify as one runs them.

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "stages/base/read_file.hpp"
#include "tests/cli/command.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/sparse_checkpoint.hpp"

using namespace zerolab;
using namespace zerolab::test;
using nlohmann::json;

namespace {

/// Saves a checkpoint "global_step2" of mlp-small in "ck".
void save(const Scratch& scratch, const std::string& flags) {
  const Outcome saved = run_zerolab(
      fmt::format("train --model mlp-small --micro-batch 1 --steps 2 --save {} --out {} {}",
                  scratch.arg("ck"), scratch.arg("run"), flags));
  INFO(saved.all());
  REQUIRE(saved.status == 0);
}

void overwrite(const std::filesystem::path& file, Index at) {
  std::fstream out(file, std::ios::binary | std::ios::in | std::ios::out);
  out.seekp(at);
  out.put('\x55');
}

/// Most bytes that the program has had in memory, while it ran with these arguments and ended well;
/// -1 if it did not.
Index peak_of_zerolab(const std::vector<std::string>& arguments) {
  const pid_t child = fork();
  if (child == 0) {
    const int nowhere = open("/dev/null", O_WRONLY);
    dup2(nowhere, STDOUT_FILENO);
    std::vector<char*> words;
    std::string program = ZEROLAB_PROGRAM;
    words.push_back(program.data());
    std::vector<std::string> copies = arguments;
    for (std::string& argument : copies) words.push_back(argument.data());
    words.push_back(nullptr);
    execv(program.c_str(), words.data());
    _exit(127);
  }
  int status = 0;
  rusage usage{};
  REQUIRE(wait4(child, &status, 0, &usage) == child);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) return -1;
  return Index{usage.ru_maxrss} * 1024;
}

}  // namespace

TEST_CASE("merge writes the same file whatever stage the checkpoint is of, and tells what it did") {
  std::vector<std::string> files;
  for (const int stage : {0, 1, 2, 3}) {
    const Scratch scratch;
    save(scratch, fmt::format("-n 3 --stage {} --bf16", stage));
    const std::string line =
        fmt::format("merge {} -o {}", scratch.arg("ck"), scratch.arg("m.safetensors"));
    const Outcome merged = run_zerolab(line);
    INFO(merged.all());
    CHECK(merged.status == 0);
    CHECK(merged.err.empty());
    CHECK(merged.count("m.safetensors: 7 tensors, ") == 1);
    CHECK(merged.count(" elements of fp32, ") == 1);
    CHECK(merged.out.find('\r') == std::string::npos);  // nobody watches: no progress
    files.push_back(read_file(scratch.path("m.safetensors")).value());
    const bool same = files.back() == files.front();
    CHECK(same);

    const json told =
        json::parse(run_zerolab(fmt::format("merge {}:global_step2 -o {} --json --dtype bf16",
                                            scratch.arg("ck"), scratch.arg("m16.safetensors")))
                        .out);
    CHECK(told["tensors"] == 7);
    CHECK(told["dtype"] == "bf16");
    CHECK(told["bytes"] == std::filesystem::file_size(scratch.path("m16.safetensors")));
    CHECK(told["elements"].get<std::size_t>() * 2 < told["bytes"].get<std::size_t>());
  }
}

TEST_CASE("merge refuses what it cannot do, and leaves no file") {
  const Scratch scratch;
  save(scratch, "-n 3 --stage 3");
  const auto merge = [&](const std::string& flags) {
    return run_zerolab(
        fmt::format("merge {} -o {} {}", scratch.arg("ck"), scratch.arg("m.safetensors"), flags));
  };
  const Outcome type = merge("--dtype bf61");
  CHECK(type.status == 2);
  CHECK(type.count("--dtype bf61 is not known; did you mean bf16?") == 1);
  const Outcome memory = merge("--max-memory 1MiB");
  CHECK(memory.status == 2);
  CHECK(memory.count("--max-memory 14MiB") == 1);
  overwrite(scratch.path("ck") / "global_step2" / "rank1.safetensors", 4000);
  const Outcome damaged = merge("");
  INFO(damaged.all());
  CHECK(damaged.status == 6);
  CHECK(damaged.count("ZL603") == 1);
  CHECK(damaged.count("rank1.safetensors is not what was written") == 1);
  for (const auto& entry : std::filesystem::directory_iterator(scratch.path(""))) {
    INFO(entry.path());
    CHECK(entry.path().string().find("m.safetensors") == std::string::npos);
  }
}

TEST_CASE("import begins at step 1 with the weights of a merged file, and needs no --model") {
  const Scratch scratch;
  save(scratch, "-n 3 --stage 3");
  REQUIRE(run_zerolab(fmt::format("merge {} -o {}", scratch.arg("ck"), scratch.arg("m"))).status ==
          0);
  const std::string common = fmt::format(
      "import {} --micro-batch 1 --steps 2 --seed 7 --json "
      "--out {}",
      scratch.arg("m"), scratch.arg("imported"));
  const auto steps_of = [](const Outcome& outcome) {
    INFO(outcome.all());
    REQUIRE(outcome.status == 0);
    return json::parse(outcome.out)["steps"];
  };
  const json steps = steps_of(run_zerolab(common + " -n 3 --stage 0"));
  CHECK(steps.size() == 2);
  CHECK(steps[0]["step"] == 1);
  CHECK(steps_of(mpirun_zerolab(3, common + " --stage 3"))[0]["loss"] == steps[0]["loss"]);
}

TEST_CASE("import refuses a file without a word about its model, or of another one") {
  const Scratch scratch;
  const std::string header = R"({"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})";
  const char length = static_cast<char>(header.size());
  scratch.write("m", std::string{length, 0, 0, 0, 0, 0, 0, 0} + header + "abcd");
  const std::string line =
      fmt::format("import {} --steps 1 --out {}", scratch.arg("m"), scratch.arg("run"));
  const Outcome unnamed = run_zerolab(line);
  INFO(unnamed.all());
  CHECK(unnamed.status == 2);
  CHECK(unnamed.count("does not say of what model") == 1);
  CHECK(unnamed.count("--model") == 1);
  const Outcome other = run_zerolab(line + " --model mlp-small");
  INFO(other.all());
  CHECK(other.status == 6);
  CHECK(other.count("ZL604") == 1);
  CHECK(other.count("has no 'embedding.weight', which the model has") == 1);
}

TEST_CASE("checkpoint inspect shows each tensor with its states, and who has what of it") {
  const Scratch scratch;
  save(scratch, "-n 3 --stage 3 --fp16 --freeze layers.0");
  const Outcome shown = run_zerolab("checkpoint inspect " + scratch.arg("ck"));
  INFO(shown.all());
  CHECK(shown.status == 0);
  CHECK(shown.count("model      mlp-small, ") == 1);
  CHECK(shown.count("in stage 3 on 3 ranks") == 1);
  CHECK(shown.count("optimizer  keeps exp_avg, exp_avg_sq\n") == 1);
  CHECK(shown.count("loss scale ") == 1);
  CHECK(shown.count("weights fp16, frozen") == 2);
  CHECK(shown.count("master, exp_avg, exp_avg_sq fp32; weights fp16") == 5);

  const json told = json::parse(run_zerolab("checkpoint inspect --json " + scratch.arg("ck")).out);
  CHECK(told["tag"] == "global_step2");
  CHECK(told["problems"].empty());
  Index elements = 0;
  for (const json& tensor : told["tensors"]) {
    Index numel = 1;
    for (const json& extent : tensor["shape"]) numel *= extent.get<Index>();
    Index covered = 0;
    for (const json& part : tensor["ranks"]) {
      CHECK(part["begin"] == covered);
      covered = part["end"];
    }
    CHECK(covered == numel);
    CHECK(tensor["bytes"] == numel * (tensor["requires_grad"] == true ? 14 : 2));
    elements += numel;
  }
  CHECK(told["elements"] == elements);
}

TEST_CASE("checkpoint verify says that a checkpoint is whole, or all that is wrong with it") {
  const Scratch scratch;
  save(scratch, "-n 4 --stage 1");
  const std::string line = "checkpoint verify " + scratch.arg("ck");
  const Outcome whole = run_zerolab(line);
  INFO(whole.all());
  CHECK(whole.status == 0);
  CHECK(whole.count("is whole: manifest, 4 files, ") == 1);

  const std::filesystem::path folder = scratch.path("ck") / "global_step2";
  overwrite(folder / "rank2.safetensors", 5000);
  const Outcome one = run_zerolab(line);
  INFO(one.all());
  CHECK(one.status == 6);
  CHECK(one.out.empty());
  CHECK(one.count("rank2.safetensors is not what was written") == 1);

  std::filesystem::remove(folder / "rank0.safetensors");
  const Outcome two = run_zerolab(line);
  INFO(two.all());
  CHECK(two.status == 6);
  CHECK(two.out.find("rank0.safetensors cannot be read") != std::string::npos);
  CHECK(two.out.find("rank2.safetensors is not what was written") != std::string::npos);
  CHECK(two.err.find("ZL603: 2 problems") != std::string::npos);
  const Outcome as_json = run_zerolab(line + " --json");
  CHECK(as_json.status == 6);
  CHECK(as_json.err.empty());
  const json told = json::parse(as_json.out);
  CHECK(told["problems"].size() == 2);
  CHECK(told["error"]["code"] == "ZL603");

  const Outcome shown = run_zerolab("checkpoint inspect " + scratch.arg("ck"));
  CHECK(shown.status == 0);  // the manifest is there
  CHECK(shown.count("warning    ") == 1);
}

TEST_CASE("checkpoint says what it can do when it is not told, or told something else") {
  for (const auto& [line, says] :
       {std::pair<std::string, std::string>{"checkpoint", "needs to know what to do"},
        {"checkpoint inspekt ck", "checkpoint inspekt is not known; did you mean inspect?"},
        {"checkpoint verify", "needs to know of which checkpoint"}}) {
    const Outcome refused = run_zerolab(line);
    INFO(refused.all());
    CHECK(refused.status == 2);
    CHECK(refused.count("ZL201") == 1);
    CHECK(refused.count(says) == 1);
    CHECK(refused.count("zerolab checkpoint verify CHECKPOINT") == 1);
  }
  const Outcome missing = run_zerolab("checkpoint verify nowhere");
  CHECK(missing.status == 6);
  CHECK(missing.count("ZL602") == 1);
}

// 1 GiB in 8 shards: a parameter of 480 MiB, one of 512 MiB, and many that are small.
TEST_CASE("B71: merging 1 GiB takes 128 MiB and what the program itself has", "[cases][slow]") {
  const Scratch scratch;
  constexpr Index kMiB = Index{1} << 20;
  std::vector<SavedParameter> parameters{{"large", {480 * kMiB / 4}, true},
                                         {"larger", {1024, 128, 1024}, true}};
  for (int i = 0; i < 2000; ++i) parameters.push_back({fmt::format("small.{}", i), {4099}, true});
  write_sparse_checkpoint(scratch.path("ck"), parameters, 8);
  constexpr Index kOfTheProgram = 32 * kMiB;  // docs/checkpoints.md
  const std::string file = scratch.path("m.safetensors").string();
  const Index merge = peak_of_zerolab({"merge", scratch.path("ck").string(), "-o", file, "--dtype",
                                       "bf16", "--max-memory", "128MiB"});
  CAPTURE(merge);
  CHECK(merge > 64 * kMiB);  // it was measured
  CHECK(merge < 128 * kMiB + kOfTheProgram);
  CHECK(std::filesystem::file_size(file) > static_cast<std::uintmax_t>(500 * kMiB));
  const Index verify = peak_of_zerolab({"checkpoint", "verify", scratch.path("ck").string()});
  CHECK(verify > 0);
  CHECK(verify < kOfTheProgram);
}
