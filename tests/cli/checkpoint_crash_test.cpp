// Saves that come to no good end: killed at any moment, on a full disk, beyond a limit, where
// nobody may write. What was saved before is whole, `latest` names it, and the next save goes on.

#include <fmt/format.h>
#include <sys/wait.h>

#include <random>
#include <thread>

#include "stages/base/read_file.hpp"
#include "stages/checkpoint/checkpoint.hpp"
#include "tests/cli/background_run.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/tampered.hpp"

using namespace zerolab;
using namespace zerolab::test;

namespace fs = std::filesystem;

namespace {

/// Two megabytes of states, most of the time spent saving them after every step.
std::string training(const Scratch& scratch, int steps, const std::string& more = "") {
  return fmt::format(
      "train --model mlp-small --stage 3 --micro-batch 1 --steps {} --out {} --plain "
      "--save {} --save-every 1 {}",
      steps, scratch.arg("run"), scratch.arg("ck"), more);
}

bool is_partial(const fs::path& path) {
  const std::string name = path.filename().string();
  return name.front() == '.' && name.ends_with(".partial");
}

/// Names in a folder, sorted.
std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

/// What is wrong with a folder of checkpoints; empty if nothing: every one that has a name is
/// whole, and latest names one.
std::string complaint(const fs::path& folder) {
  try {
    if (fs::exists(folder / kLatest)) read_everything(folder.string());
    for (const std::string& tag : tags_in(folder)) {
      read_everything(fmt::format("{}:{}", folder.string(), tag));
    }
  } catch (const Error& error) {
    return error.what();
  }
  for (const std::string& name : names_in(folder)) {
    const bool known = name == kLatest || name.rfind("global_step", 0) == 0 || is_partial(name);
    if (!known) return "a strange file: " + name;
  }
  return "";
}

Index last_step(const fs::path& folder) {
  const std::string text = read_file(folder / kLatest).value_or("");
  const std::size_t digits = text.find_first_of("0123456789");
  return digits == std::string::npos ? 0 : std::stoll(text.substr(digits));
}

/// Waits until a save is behind it since `step`, so that more of them follow each other; half a
/// minute at most.
bool saves_beyond(const fs::path& folder, Index step) {
  for (int i = 0; i < 3000; ++i) {
    if (last_step(folder) > step) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

enum class Launch { threads, mpirun };

/// Kills a training `times` times, each time resumed from what the one before has left. Returns how
/// often something was half written.
int kill_while_saving(Launch launch, int times, const Scratch& scratch) {
  std::mt19937 dice(launch == Launch::threads ? 1 : 2);
  std::uniform_int_distribution<int> microseconds(0, 120'000);  // one save and a half
  const fs::path folder = scratch.path("ck");
  int halves = 0;
  for (int i = 0; i < times; ++i) {
    const Index before = last_step(folder);
    const std::string arguments = training(scratch, 100'000, "--keep 2 --resume auto");
    BackgroundRun run(
        launch == Launch::threads
            ? fmt::format("{} {} -n 3", ZEROLAB_PROGRAM, arguments)
            : fmt::format("{} -n 3 {} {}", ZEROLAB_MPIRUN, ZEROLAB_PROGRAM, arguments));
    const bool saving = saves_beyond(folder, before);
    std::this_thread::sleep_for(std::chrono::microseconds(microseconds(dice)));
    if (launch == Launch::threads) {
      run.signal(SIGKILL);
    } else {
      const std::vector<pid_t> ranks = rank_processes(scratch.path(""));
      REQUIRE(ranks.size() == 3);
      kill(ranks[static_cast<std::size_t>(i % 3)], SIGKILL);
    }
    const Outcome outcome = run.finish();
    INFO("repetition " << i << "\n" << outcome.all());
    REQUIRE(saving);
    CHECK(outcome.status != 0);
    if (launch == Launch::mpirun) REQUIRE(nothing_is_left(scratch.path("")));
    REQUIRE(complaint(folder) == "");
    const std::vector<std::string> names = names_in(folder);
    halves += std::any_of(names.begin(), names.end(), is_partial) ? 1 : 0;
  }
  return halves;
}

/// The next run resumes, saves, and takes away what was half written.
void check_goes_on(const Scratch& scratch) {
  const fs::path folder = scratch.path("ck");
  const Index step = last_step(folder) + 2;
  const Outcome outcome = run_zerolab(
      training(scratch, static_cast<int>(step), "-n 3 --keep 2 --resume ") + scratch.arg("ck"));
  INFO(outcome.all());
  CHECK(outcome.status == 0);
  CHECK(complaint(folder) == "");
  CHECK(names_in(folder) == std::vector<std::string>{fmt::format("global_step{}", step - 1),
                                                     fmt::format("global_step{}", step), "latest"});
}

}  // namespace

TEST_CASE("killed at 25 moments of its saves, a run of threads goes on from a whole checkpoint",
          "[slow]") {
  const Scratch scratch;
  const int halves = kill_while_saving(Launch::threads, 25, scratch);
  CHECK(halves >= 5);  // or the moments were not inside of saves
  check_goes_on(scratch);
}

TEST_CASE("one rank killed at 25 moments of its saves, a run under mpirun goes on from a whole one",
          "[slow]") {
  const Scratch scratch;
  const int halves = kill_while_saving(Launch::mpirun, 25, scratch);
  CHECK(halves >= 5);
  check_goes_on(scratch);
}

TEST_CASE("killed in a save, a run is resumed, and what was half written goes") {
  const Scratch scratch;
  kill_while_saving(Launch::threads, 2, scratch);
  scratch.write("ck/.global_step9.partial/rank0.safetensors", "half");
  scratch.write("ck/.latest.partial", "global_st");
  check_goes_on(scratch);
}
