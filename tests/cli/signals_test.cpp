// Signals from outside: the user's, the batch system's, and the ones nobody can answer.

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>

#include "tests/cli/background_run.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/error_samples.hpp"

using namespace zerolab::test;

namespace {

const std::string kRun = "train --model mlp-small --stage 3 --steps 1000000 --out ";

std::string threads(const Scratch& scratch) {
  return fmt::format("{} {} {} -n 3", ZEROLAB_PROGRAM, kRun, scratch.arg("run"));
}
std::string mpirun(int ranks, const Scratch& scratch) {
  return fmt::format("{} -n {} {} {} {}", ZEROLAB_MPIRUN, ranks, ZEROLAB_PROGRAM, kRun,
                     scratch.arg("run"));
}

/// All lines of all logs are whole, and every rank got as far as the others, but for one step.
void check_logs(const std::filesystem::path& folder, int ranks) {
  std::vector<int> steps;
  for (int rank = 0; rank < ranks; ++rank) {
    int done = 0;
    for (const auto& event : read_json_lines(folder / fmt::format("rank{}.events.jsonl", rank))) {
      if (event["ev"] == "step") ++done;
    }
    steps.push_back(done);
  }
  CHECK(*std::min_element(steps.begin(), steps.end()) >= 3);
  CHECK(*std::max_element(steps.begin(), steps.end()) -
            *std::min_element(steps.begin(), steps.end()) <=
        1);
}

}  // namespace

TEST_CASE("SIGINT and SIGTERM end a run in order, with 128 + n and one message") {
  using zerolab::Code;
  const std::vector<std::pair<int, Code>> signals{{SIGINT, Code::interrupted},
                                                  {SIGTERM, Code::terminated}};
  for (const auto& [number, kind] : signals) {
    const std::string code = code_name(kind);
    for (const bool under_mpirun : {false, true}) {
      INFO(code << (under_mpirun ? " under mpirun" : " with threads"));
      const Scratch scratch;
      BackgroundRun run(under_mpirun ? mpirun(3, scratch) : threads(scratch));
      REQUIRE(reaches_step(scratch.path("run"), 3));
      run.signal(number);
      const Outcome outcome = run.finish();
      INFO(outcome.all());
      CHECK(outcome.status == 128 + number);
      CHECK(outcome.count(code) == 1);
      const auto error = read_json(scratch.path("run") / "error.json");
      CHECK(error["exit_status"] == 128 + number);
      CHECK(zerolab::reads_like(code + ": " + std::string(error["message"]),
                                zerolab::sample_of(kind)));
      check_logs(scratch.path("run"), 3);
      CHECK(nothing_is_left(scratch.path("run")));
    }
  }
}

TEST_CASE("when a rank is killed nothing is left of the job, and the logs can be read") {
  for (const int ranks : {2, 4}) {
    const Scratch scratch;
    BackgroundRun run(mpirun(ranks, scratch));
    REQUIRE(reaches_step(scratch.path("run"), 3));
    const auto processes = rank_processes(scratch.path("run"));
    REQUIRE(processes.size() == static_cast<std::size_t>(ranks));
    kill(processes[1], SIGKILL);
    const Outcome outcome = run.finish();
    CHECK(outcome.status > 0);
    CHECK(nothing_is_left(scratch.path("run")));
    check_logs(scratch.path("run"), ranks);
  }
}

TEST_CASE("when a rank is stopped the watchdog ends the run and says where each rank waits") {
  for (const int ranks : {2, 4}) {
    const Scratch scratch;
    BackgroundRun run(mpirun(ranks, scratch) + " --comm-timeout 1");
    REQUIRE(reaches_step(scratch.path("run"), 3));
    const auto processes = rank_processes(scratch.path("run"));
    REQUIRE(processes.size() == static_cast<std::size_t>(ranks));
    kill(processes[1], SIGSTOP);
    const Outcome outcome = run.finish();
    INFO(outcome.all());
    CHECK(outcome.status == 7);
    CHECK(outcome.count("ZL705") == 1);
    CHECK(outcome.count("rank 0 waits in ") == 1);
    CHECK(outcome.count("rank 1 does not answer") == 1);
    CHECK(read_json(scratch.path("run") / "error.json")["code"] == "ZL705");
    CHECK(nothing_is_left(scratch.path("run")));
    check_logs(scratch.path("run"), ranks);
  }
}
