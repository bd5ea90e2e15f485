// One rank cannot go on, in the middle of a step, while collectives are under way: the others stop
// too, the job's error is that rank's, and nothing stays allocated.

#include <stdexcept>

#include "tests/support/catch.hpp"
#include "tests/support/run_ranks.hpp"
#include "tests/support/sandwich.hpp"

using namespace zerolab;
using namespace zerolab::test;

namespace {

constexpr int kRanks = 4;
constexpr Index kFailingStep = 3;

struct Misfortune : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Runs `accident` in step 3, in its forward or its backward, on one rank only.
class Fateful : public Module {
 public:
  Fateful(ParameterSet& parameters, VisitKind when, int rank, std::function<void(Ledger&)> accident)
      : Module("fateful"),
        when_(when),
        rank_(rank),
        accident_(std::move(accident)),
        inner_(parameters, "inner", kSandwichWidth, kSandwichWidth, Initial::normal(1)) {
    adopt(inner_);
  }

 protected:
  Tensor do_forward(const Tensor& input) override {
    run_accident(VisitKind::forward);
    return inner_.forward(input);
  }
  Tensor do_backward(const Tensor& output_gradient) override {
    Tensor input_gradient = inner_.backward(output_gradient);
    run_accident(VisitKind::backward);
    return input_gradient;
  }

 private:
  void run_accident(VisitKind now) {
    const Recorder& recorder = context().recorder;
    if (now == when_ && recorder.rank() == rank_ && recorder.step() == kFailingStep) {
      accident_(context().ledger);
    }
  }

  VisitKind when_;
  int rank_;
  std::function<void(Ledger&)> accident_;
  Linear inner_;
};

Training training_with(VisitKind when, int rank, const std::function<void(Ledger&)>& accident,
                       int stage) {
  Training training = training_of_sandwich(
      [=](ParameterSet& parameters) {
        return std::make_unique<Fateful>(parameters, when, rank, accident);
      },
      stage);
  training.settings.zero.overlap_comm = true;
  training.settings.zero.reduce_bucket_size = 1;
  return training;
}

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

}  // namespace

TEST_CASE("an exception on one rank ends all ranks, and nothing stays allocated") {
  for (const int stage : {0, 1, 2, 3}) {
    for (const VisitKind when : {VisitKind::forward, VisitKind::backward}) {
      INFO("stage " << stage << ", " << name_of(when));
      const Training training = training_with(
          when, 2, [](Ledger&) { throw Misfortune("rank 2 is out of luck"); }, stage);
      CHECK_THROWS_AS(run(kRanks, training), Misfortune);
      CHECK(left_over(training) == std::vector<Index>(kRanks, 0));
    }
  }
}

TEST_CASE("out of memory on one rank ends all ranks, and nothing stays allocated") {
  for (const int stage : {0, 1, 2, 3}) {
    for (const VisitKind when : {VisitKind::forward, VisitKind::backward}) {
      INFO("stage " << stage << ", " << name_of(when));
      Training training = training_with(
          when, 1,
          [](Ledger& ledger) { ledger.allocate(Index{1} << 30, Category::workspace, "greed"); },
          stage);
      training.device_memory = Index{1} << 20;
      CHECK_THROWS_AS(run(kRanks, training), OutOfMemory);
      CHECK(left_over(training) == std::vector<Index>(kRanks, 0));
    }
  }
}
