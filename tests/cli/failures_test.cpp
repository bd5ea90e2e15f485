// Whatever goes wrong on one rank ends the whole job with the status of the error and one message,
// and every rank's log can be read.

#include <fmt/format.h>

#include <future>

#include "tests/cli/background_run.hpp"
#include "tests/support/accident.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/error_samples.hpp"

using namespace zerolab;
using namespace zerolab::test;

namespace {

enum class Launch { threads, mpirun };

struct Case {
  Launch launch;
  int ranks;
  Occasion occasion;
  int stage, rank;
};

Outcome run_failing(const Case& failing, const std::string& accident, const Scratch& folder) {
  const std::string line =
      fmt::format("{} {} {} {} {} {} {}", ZEROLAB_FAILING_TRAINING, failing.ranks, failing.stage,
                  name_of(failing.occasion), accident, failing.rank, folder.arg(""));
  if (failing.launch == Launch::threads) return run_command(line);
  return run_command(fmt::format("{} -n {} {}", ZEROLAB_MPIRUN, failing.ranks, line));
}

/// What is wrong with how the job ended; empty if nothing is.
std::string complaint(const Case& failing, const std::string& accident, int status,
                      const std::string& code) {
  const Scratch folder;
  const Outcome outcome = run_failing(failing, accident, folder);
  const std::string message = fmt::format("rank {}: {}", failing.rank, code);
  if (outcome.status != status) return fmt::format("status {}\n{}", outcome.status, outcome.all());
  if (outcome.count(message) != 1) return "no message, or several:\n" + outcome.all();
  if (outcome.count("ZL") != 1) return "more than one error:\n" + outcome.all();
  for (int rank = 0; rank < failing.ranks; ++rank) {
    const auto log = read_json_lines(folder.path(fmt::format("rank{}.events.jsonl", rank)));
    if (log.empty()) return fmt::format("rank {} has no log", rank);
    const Index step = log.back()["step"];
    const Index reached = failing.occasion == Occasion::set_up ? 0 : kFatefulStep;
    if (step < reached - 1 || step > reached || (rank == failing.rank && step != reached)) {
      return fmt::format("the log of rank {} ends in step {}", rank, step);
    }
  }
  return "";
}

/// Repetition i: another occasion, stage and rank each time.
Case rotated(Launch launch, int ranks, int i) {
  return {launch, ranks, kOccasions[i % 4], (i / 4) % 4, i % ranks};
}

// Jobs mostly wait, for processes to start and to end, so each repetition's run beside each other.
void check_all(int repetitions) {
  struct Job {
    Case failing;
    std::string accident;
    std::future<std::string> complaint;
  };
  for (const int ranks : {2, 4}) {
    for (int i = 0; i < repetitions; ++i) {
      std::vector<Job> jobs;
      for (const Launch launch : {Launch::threads, Launch::mpirun}) {
        const Case failing = rotated(launch, ranks, i);
        jobs.push_back({failing, "exception", std::async(std::launch::async, [failing] {
                          return complaint(failing, "exception", 1, "ZL101");
                        })});
        jobs.push_back({failing, "memory", std::async(std::launch::async, [failing] {
                          return complaint(failing, "memory", 3, "ZL301");
                        })});
      }
      for (Job& job : jobs) {
        INFO((job.failing.launch == Launch::mpirun ? "mpirun" : "threads")
             << ", " << ranks << " ranks, repetition " << i << ", " << job.accident);
        CHECK(job.complaint.get() == "");
      }
    }
  }
}

}  // namespace

TEST_CASE("a failing rank ends the job with its status, one message and readable logs") {
  check_all(4);
}

TEST_CASE("a failing rank ends the job so in each of 100 repetitions", "[slow]") { check_all(100); }

TEST_CASE("a rank that sleeps for ever ends the run with code 7, and it is told who waits where") {
  for (const Launch launch : {Launch::threads, Launch::mpirun}) {
    INFO((launch == Launch::mpirun ? "mpirun" : "threads"));
    const Scratch folder;
    const Case sleeping{launch, 3, Occasion::backward, 3, 1};
    const Outcome outcome = run_failing(sleeping, "sleep", folder);
    INFO(outcome.all());
    CHECK(outcome.status == 7);
    CHECK(outcome.count("ZL705") == 1);
    for (const int rank : {0, 2}) {
      const std::string line = fmt::format("rank {} waits in all_gather ", rank);
      CHECK(outcome.count(line) == 1);
    }
    CHECK(outcome.count("of 'embedding.weight'") == 2);
    CHECK(outcome.count("(step 3, micro-step 0, backward of 'embedding')") == 2);
    CHECK(outcome.count("rank 1 does not answer") == 1);
    for (const int rank : {0, 1, 2}) {
      // complete lines, at least to the end of the last step
      const auto log = read_json_lines(folder.path(fmt::format("rank{}.events.jsonl", rank)));
      CHECK(log.back()["step"] >= kFatefulStep - 1);
    }
  }
}

TEST_CASE("the sample of ZL705 in docs/errors.md is what zerolab says", "[docs]") {
  const Scratch folder;
  const std::string said =
      run_failing({Launch::mpirun, 2, Occasion::backward, 3, 1}, "sleep", folder).err;
  const auto begin = said.find("ZL705");
  REQUIRE(begin != std::string::npos);
  const std::string message = said.substr(begin, said.find("\n  way out") - begin);
  INFO(message);
  CHECK(reads_like(message, sample_of(Code::comm_timeout)));
}

TEST_CASE("a rank that leaves without a word ends the job, and nothing is left of it") {
  const Scratch folder;
  const Outcome outcome = run_failing({Launch::mpirun, 4, Occasion::forward, 2, 2}, "exit", folder);
  CHECK(outcome.status != 0);
  CHECK(nothing_is_left(folder.path("")));
}
