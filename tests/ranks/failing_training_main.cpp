// A training in which one rank has an accident (tests/cli/failures_test.cpp runs it and looks at
// what comes out). Ranks are processes under mpirun, threads otherwise.
//   failing_training RANKS STAGE OCCASION ACCIDENT RANK FOLDER

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <stdexcept>
#include <string>
#include <thread>

#include "stages/comm/job.hpp"
#include "tests/support/accident.hpp"

namespace zerolab::test {
namespace {

constexpr Index kBudget = Index{1} << 20;

Occasion occasion_named(const std::string& name) {
  for (const Occasion occasion : kOccasions) {
    if (name_of(occasion) == name) return occasion;
  }
  throw std::invalid_argument(name);
}

Accident accident_named(const std::string& name) {
  if (name == "exception") return [](Ledger&) { throw std::runtime_error("out of luck"); };
  if (name == "memory") {
    return [](Ledger& ledger) { ledger.allocate(2 * kBudget, Category::workspace, "greed"); };
  }
  if (name == "sleep") {
    return [](Ledger&) { std::this_thread::sleep_for(std::chrono::hours(1)); };
  }
  if (name == "exit") return [](Ledger&) { _exit(3); };
  throw std::invalid_argument(name);
}

int run(const std::vector<std::string>& arguments) {
  Training training = training_with_accident(occasion_named(arguments[2]), std::stoi(arguments[4]),
                                             accident_named(arguments[3]), std::stoi(arguments[1]));
  training.device_memory = kBudget;
  const auto program = [&](int) {
    RankProgram rank;
    rank.body = [&](Communicator& communicator) {
      Recorder recorder(communicator.rank(),
                        std::make_unique<std::ofstream>(fmt::format(
                            "{}/rank{}.events.jsonl", arguments[5], communicator.rank())));
      train(communicator, recorder, training);
    };
    rank.report = [](const Communicator& communicator, const Error& error) {
      fmt::print(stderr, "rank {}: {}\n", communicator.rank(), error.what());
    };
    return rank;
  };
  const Patience patience{.timeout = std::chrono::seconds(1)};
  return launched_by_mpi() ? run_mpi(program, patience)
                           : run_threads(std::stoi(arguments[0]), program, patience);
}

}  // namespace
}  // namespace zerolab::test

int main(int argc, char** argv) { return zerolab::test::run({argv + 1, argv + argc}); }
