// One rank cannot go on, in the middle of a step, while collectives are under way: the others stop
// too, the job's error is that rank's, and nothing stays allocated.

#include <stdexcept>

#include "lab/failures/wrappers/stage_wrapper.hpp"
#include "tests/support/accident.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/run_ranks.hpp"
#include "tests/support/trainings.hpp"

using namespace zerolab;
using namespace zerolab::test;

namespace {

constexpr int kRanks = 4;

struct Misfortune : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Runs it, whatever it throws, and returns the bytes that each rank took and did not give back.
std::vector<Index> left_over(const Training& training) {
  std::vector<Index> balance(kRanks, 0);
  try {
    run_ranks(kRanks, [&](Communicator& communicator) {
      Recorder recorder(communicator.rank());
      Index& mine = balance[static_cast<std::size_t>(communicator.rank())];
      recorder.observe([&mine](const Stamp&, const Event& event) {
        if (const auto* taken = std::get_if<AllocEvent>(&event)) mine += taken->bytes;
        if (const auto* freed = std::get_if<FreeEvent>(&event)) mine -= freed->bytes;
      });
      train(communicator, recorder, training);
    });
  } catch (const std::exception&) {
    return balance;
  }
  throw std::logic_error("nobody failed");
}

/// Cannot even let go what the failing module had.
class Clumsy : public StageWrapper {
 public:
  using StageWrapper::StageWrapper;
  void release(const Visit& visit) override {
    if (visit.module.name() == "fateful" && runtime().recorder.step() == kFatefulStep) {
      throw std::logic_error("dropped it");
    }
    StageWrapper::release(visit);
  }
};

}  // namespace

TEST_CASE("what fails while a failure is handled does not hide it") {
  const Training training = training_with_accident(
      Occasion::forward, 0, [](Ledger&) { throw Misfortune("out of luck"); }, 3);
  CHECK_THROWS_AS(run(1, with_stage<Clumsy>(training)), Misfortune);
}

TEST_CASE("an exception on one rank ends all ranks, and nothing stays allocated") {
  for (const int stage : {0, 1, 2, 3}) {
    for (const Occasion occasion : kOccasions) {
      INFO("stage " << stage << ", " << name_of(occasion));
      const Training training = training_with_accident(
          occasion, 2, [](Ledger&) { throw Misfortune("rank 2 is out of luck"); }, stage);
      CHECK_THROWS_AS(run(kRanks, training), Misfortune);
      CHECK(left_over(training) == std::vector<Index>(kRanks, 0));
    }
  }
}

TEST_CASE("out of memory on one rank ends all ranks, and nothing stays allocated") {
  for (const int stage : {0, 1, 2, 3}) {
    for (const Occasion occasion : kOccasions) {
      INFO("stage " << stage << ", " << name_of(occasion));
      Training training = training_with_accident(
          occasion, 1,
          [](Ledger& ledger) { ledger.allocate(Index{1} << 30, Category::workspace, "greed"); },
          stage);
      training.device_memory = Index{1} << 20;
      CHECK_THROWS_AS(run(kRanks, training), OutOfMemory);
      CHECK(left_over(training) == std::vector<Index>(kRanks, 0));
    }
  }
}
