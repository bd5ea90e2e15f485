// Kind c of docs/cases.md, with reductions under way while gradients are computed.

#include "lab/failures/wrappers/stage_wrapper.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/delaying_communicator.hpp"
#include "tests/support/observed.hpp"
#include "tests/support/scripted.hpp"
#include "tests/support/weight_history.hpp"

using namespace zerolab;
using namespace zerolab::test;

namespace {

// --- B32 -----------------------------------------------------------------------------------------

/// Ranks 1 and 3 are slow, so that everybody waits for somebody: their communication, or what they
/// compute.
enum class Slow { nothing, communication, computation };

bool is_slow(int rank) { return rank % 2 == 1; }

/// Pauses before a gradient is handed over.
class SlowComputation : public StageWrapper {
 public:
  SlowComputation(std::unique_ptr<Stage> stage, Runtime& runtime)
      : StageWrapper(std::move(stage), runtime),
        pauses_(100 + static_cast<std::uint64_t>(runtime.rank())) {}

  void gradient_ready(Parameter& parameter, MicroStep micro_step) override {
    if (is_slow(runtime().rank())) pauses_.take();
    StageWrapper::gradient_ready(parameter, micro_step);
  }

 private:
  Pauses pauses_;
};

/// Two buckets: half of the parameters of tiny_mlp and the rest.
std::vector<std::string> bits_of(int stage, bool overlap, Slow slow, Index steps) {
  Training training = training_of(tiny_mlp(), stage);
  training.steps = steps;
  training.settings.zero.overlap_comm = overlap;
  training.settings.zero.reduce_bucket_size = training.build()->parameters().numel() / 2;
  if (slow == Slow::computation) training = with_stage<SlowComputation>(training);
  const auto reports = run_ranks(4, [&](Communicator& inner) {
    DelayingCommunicator delayed(inner);
    const bool delays = slow == Slow::communication && is_slow(inner.rank());
    Recorder recorder(inner.rank());
    return train(delays ? delayed : inner, recorder, training);
  });
  for (const RankReport& report : reports) REQUIRE(bits(report) == bits(reports[0]));
  return bits(reports[0]);
}

void check_overlap(Index steps) {
  for (const int stage : {0, 1, 2, 3}) {
    const auto expected = bits_of(stage, false, Slow::nothing, steps);
    for (const Slow slow : {Slow::communication, Slow::computation}) {
      INFO("stage " << stage
                    << (slow == Slow::communication ? ", slow communication"
                                                    : ", slow computation"));
      CHECK(bits_of(stage, true, slow, steps) == expected);
    }
  }
}

// --- B33 -----------------------------------------------------------------------------------------

/// 1, 10 and 100 in the three micro-steps on average: half of it on rank 0, half as much again on
/// rank 1.
float powers_of_ten(Index, const Moment& moment) {
  const float mean = moment.micro_step == 0 ? 1.0F : moment.micro_step == 1 ? 10.0F : 100.0F;
  return mean * (moment.rank == 0 ? 0.5F : 1.5F);
}

}  // namespace

TEST_CASE("B32: with overlap, slow ranks change no bit", "[cases]") { check_overlap(5); }

TEST_CASE("B32: with overlap, slow ranks change no bit in 200 steps", "[cases][slow]") {
  check_overlap(200);
}

TEST_CASE("B33: with accumulation and overlap every micro-step counts", "[cases]") {
  for (const int stage : {0, 1, 2, 3}) {
    // all in one bucket, or three weights of 40 elements in a bucket each
    for (const Index bucket : {Index{1000}, Index{1}}) {
      INFO("stage " << stage << ", bucket " << bucket);
      Training training = training_of_script({{40}, {40}, {40}}, powers_of_ten, stage);
      training.settings.gradient_accumulation_steps = 3;
      training.settings.zero.overlap_comm = true;
      training.settings.zero.reduce_bucket_size = bucket;
      training.steps = 4;
      WeightHistory history;
      run(2, with_history(training, history));
      const std::vector<float> mean(40, 37);
      CHECK(largest_difference(history.gradient, {mean, mean, mean}) < 1e-6);

      const std::size_t rounds = reductions(2, training).size();
      const std::size_t buckets = bucket == 1 ? 3 : 1;
      CHECK(rounds == 4 * buckets * (stage < 2 ? 1 : 3));
    }
  }
}

TEST_CASE("B34: a mean gradient is not reduced again by the next micro-step or step", "[cases]") {
  const Script one = [](Index, const Moment& moment) { return moment.rank == 0 ? 0.5F : 1.5F; };
  for (const int stage : {0, 1, 2, 3}) {
    for (const Index steps : {1, 2, 3}) {
      INFO("stage " << stage << ", step " << steps);
      Training training = training_of_script({{7}}, one, stage);
      training.settings.gradient_accumulation_steps = 2;
      training.settings.zero.overlap_comm = true;
      training.steps = steps;
      WeightHistory history;
      run(2, with_history(training, history));
      CHECK(history.gradient == Weights{std::vector<float>(7, 1)});
    }
  }
}
