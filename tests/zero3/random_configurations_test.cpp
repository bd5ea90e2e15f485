// N1 and N3 over settings that nobody would think of: whatever they are, the bits are those of
// stage 0 (with accumulation, of stage 2).

#include "lab/failures/wrappers/stage_wrapper.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/delaying_communicator.hpp"
#include "tests/support/drawn_training.hpp"
#include "tests/support/run_ranks.hpp"

namespace zerolab::test {
namespace {

/// The same learning, as plainly as it goes.
Training reference(const DrawnTraining& drawn) {
  Training training = drawn.training;
  const bool accumulates = training.settings.gradient_accumulation_steps > 1;
  // stages 0 and 1 add micro-steps before they reduce, stages 2 and 3 afterwards
  const int stage = training.settings.zero.stage < 2 || !accumulates ? 0 : 2;
  training.settings.zero = {};
  training.settings.zero.stage = stage;
  training.check_collectives = false;
  training.link = {};
  return training;
}

TEST_CASE("N1, N3: 200 random configurations have the bits of the plainest one", "[zero3]") {
  constexpr std::uint64_t kFirstSeed = 20'261'130;
  for (std::uint64_t seed = kFirstSeed; seed < kFirstSeed + 200; ++seed) {
    const DrawnTraining drawn = draw_training(seed);
    INFO(drawn.text);
    const auto expected = bits(run(drawn.ranks, reference(drawn))[0]);
    for (const RankReport& report : run(drawn.ranks, drawn.training)) {
      CHECK(bits(report) == expected);
      CHECK(report.left_over.total() == 0);
    }
  }
}

/// Pauses where the compute thread hands work to the stream, and where it comes to need it.
class PausingStage : public StageWrapper {
 public:
  PausingStage(std::unique_ptr<Stage> stage, Runtime& runtime)
      : StageWrapper(std::move(stage), runtime),
        pauses_(100 + static_cast<std::uint64_t>(runtime.rank())) {}

  void fetch(const Visit& visit) override {
    pauses_.take();
    StageWrapper::fetch(visit);
  }
  void release(const Visit& visit) override {
    pauses_.take();
    StageWrapper::release(visit);
  }

 private:
  Pauses pauses_;
};

TEST_CASE("N3: pauses of 0 to 5 ms on either side of the stream change no bit and no byte",
          "[zero3]") {
  for (const Index reuse : {Index{0}, Index{500}}) {
    Training training = training_of(tiny_mlp(), 3);
    training.steps = 3;
    training.settings.zero.prefetch_bucket_size = 300;
    training.settings.zero.max_reuse_distance = reuse;
    training.settings.zero.reduce_bucket_size = 200;
    const RankReport expected = run(3, training)[0];
    const Training pausing = with_stage<PausingStage>(training);
    const auto slow_link = run_ranks(3, [&](Communicator& inner) {
      DelayingCommunicator delayed(inner);
      Recorder recorder(inner.rank());
      return train(delayed, recorder, training);
    });
    for (const RankReport& report : {slow_link[0], run(3, pausing)[0]}) {
      CHECK(bits(report) == bits(expected));
      CHECK(report.fetches == expected.fetches);
      CHECK(report.memory[0].category_peak.by_category ==
            expected.memory[0].category_peak.by_category);
    }
  }
}

}  // namespace
}  // namespace zerolab::test
