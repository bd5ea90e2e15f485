// Saves that come to no good end: killed at any moment, on a full disk, beyond a limit, where
// nobody may write. What was saved before is whole, `latest` names it, and the next save goes on.

#include <fmt/format.h>
#include <sys/wait.h>

#include <algorithm>
#include <csignal>
#include <optional>
#include <random>
#include <thread>

#include "stages/base/read_file.hpp"
#include "stages/checkpoint/checkpoint.hpp"
#include "tests/cli/background_run.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/names_in.hpp"
#include "tests/support/tampered.hpp"
#include "tests/support/thrown.hpp"

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

namespace {

/// How a command gets file systems of its own, which end with it; nothing where that is not
/// allowed.
std::optional<std::string> own_mounts() {
  for (const std::string unshare : {"unshare -m", "unshare -rm"}) {
    if (run_command(unshare + " mount -t tmpfs none /mnt").status == 0) return unshare;
  }
  WARN("no mounts may be made here, so NOTHING is tested of full and read-only disks");
  return std::nullopt;
}

/// Runs shell commands; `${train}` in them is a training that saves after every step into `ck`.
Outcome run_shell(const Scratch& scratch, const std::string& commands, int steps,
                  const std::string& shell = "sh") {
  std::string script = commands;
  const std::string line = fmt::format("{} {}", ZEROLAB_PROGRAM, training(scratch, steps, "-n 3"));
  for (auto at = script.find("${train}"); at != std::string::npos; at = script.find("${train}")) {
    script.replace(at, 8, line);
  }
  return run_command(fmt::format("{} -c \"{}\"", shell, script));
}

void check_refused(const Outcome& outcome, const std::vector<std::string>& parts) {
  INFO(outcome.all());
  CHECK(outcome.status == 6);
  CHECK(outcome.count("ZL601") == 1);
  CHECK(outcome.count("ZL") == 1);
  for (const std::string& part : parts) {
    INFO(part);
    CHECK(outcome.count(part) > 0);
  }
}

/// A folder with the checkpoint of step 1.
void save_one(const Scratch& scratch) {
  const Outcome outcome = run_shell(scratch, "${train}", 1);
  INFO(outcome.all());
  REQUIRE(outcome.status == 0);
}

const std::vector<std::string> kFirstOnly{"global_step1", "latest"};

}  // namespace

TEST_CASE("on a full disk a save says what it needs and what is free, and leaves nothing") {
  const auto unshare = own_mounts();
  if (!unshare) return;
  const Scratch scratch;
  fs::create_directory(scratch.path("ck"));
  // Room for one checkpoint of 2.4 MB. What is on it then is copied to where it can be looked at.
  const Outcome outcome =
      run_shell(scratch,
                fmt::format("mount -t tmpfs -o size=3m none {0} && ${{train}}; s=\\$?; "
                            "cp -a {0} {1}; exit \\$s",
                            scratch.arg("ck"), scratch.arg("after")),
                3, *unshare + " sh");
  check_refused(outcome, {"No space left on device", " needed, of which ", " free)",
                          "/.global_step2.partial/rank", "make room, or keep fewer"});
  CHECK(names_in(scratch.path("after")) == kFirstOnly);
  CHECK(complaint(scratch.path("after")) == "");
}

TEST_CASE("B69: a save that stops halfway leaves the one before it, and says what it needs",
          "[cases]") {
  const Scratch scratch;
  save_one(scratch);
  // 1200 blocks of 512 bytes: less than a shard, more than the log.
  check_refused(run_shell(scratch, "ulimit -f 1200; exec ${train} --resume auto", 2),
                {"File too large", "789 KiB needed, a file may have 600 KiB", "(ulimit -f)"});
  CHECK(names_in(scratch.path("ck")) == kFirstOnly);
  CHECK(complaint(scratch.path("ck")) == "");
}

TEST_CASE("a folder of checkpoints that is read-only is refused before the first step") {
  const auto unshare = own_mounts();
  if (!unshare) return;
  const Scratch scratch;
  save_one(scratch);
  const std::string folder = scratch.arg("ck");
  const Outcome outcome = run_shell(
      scratch,
      fmt::format("mount --bind {0} {0} && mount -o remount,ro,bind {0} && exec ${{train}}",
                  folder),
      2, *unshare + " sh");
  check_refused(outcome, {"Read-only file system", "name a folder that may be written"});
  CHECK_FALSE(contains(read_file(scratch.path("run/rank0.events.jsonl")).value(), "\"step\":1,"));
  CHECK(names_in(scratch.path("ck")) == kFirstOnly);
  CHECK(complaint(scratch.path("ck")) == "");
}

TEST_CASE("what stands in the way of a checkpoint's name is named and not taken away") {
  const Scratch scratch;
  save_one(scratch);
  SECTION("a file") {
    scratch.write("ck/global_step2", "mine");
    check_refused(run_shell(scratch, "${train}", 2), {"/ck/global_step2 cannot be written",
                                                      "no checkpoint of zerolab", "move it away"});
    CHECK(read_file(scratch.path("ck/global_step2")) == "mine");
    fs::remove(scratch.path("ck/global_step2"));
  }
  SECTION("a checkpoint of another program") {
    scratch.write("ck/global_step2/mp_rank_00_model_states.pt", "theirs");
    check_refused(run_shell(scratch, "${train}", 2),
                  {"/ck/global_step2 cannot be written", "no checkpoint of zerolab"});
    CHECK(read_file(scratch.path("ck/global_step2/mp_rank_00_model_states.pt")) == "theirs");
    fs::remove_all(scratch.path("ck/global_step2"));
  }
  CHECK(names_in(scratch.path("ck")) == kFirstOnly);
  CHECK(complaint(scratch.path("ck")) == "");
  check_goes_on(scratch);
}

TEST_CASE("where latest cannot be moved the checkpoint is whole, and that is told") {
  const Scratch scratch;
  save_one(scratch);
  fs::remove(scratch.path("ck/latest"));
  scratch.write("ck/latest/keep", "mine");
  check_refused(run_shell(scratch, "${train}", 1),
                {"/ck/latest cannot be written: Is a directory"});
  CHECK(names_in(scratch.path("ck")) == kFirstOnly);  // and no .latest.partial
  CHECK_NOTHROW(read_everything(scratch.path("ck").string() + ":global_step1"));
  CHECK(read_file(scratch.path("ck/latest/keep")) == "mine");
}

TEST_CASE("a damaged checkpoint is told once, whatever runs the ranks") {
  const Scratch scratch;
  save_one(scratch);
  const fs::path shard = scratch.path("ck/global_step1/rank1.safetensors");
  const std::string arguments = training(scratch, 2, "--resume auto");
  const auto check_told = [&](const std::string& reason) {
    for (const Outcome& outcome :
         {run_zerolab(arguments + " -n 3"), mpirun_zerolab(3, arguments)}) {
      INFO(outcome.all());
      CHECK(outcome.status == 6);
      CHECK(outcome.count("ZL603") == 1);
      CHECK(outcome.count("ZL") == 1);
      CHECK(outcome.count("rank1.safetensors " + reason) == 1);
    }
  };
  flip_bit(shard, static_cast<Index>(fs::file_size(shard)) * 8 - 1);
  check_told("is not what was written: the checksum");
  fs::resize_file(shard, fs::file_size(shard) - 1);
  check_told("has ");
  fs::remove(shard);
  check_told("cannot be read: No such file");
}
