// N1 and N3 over settings that nobody would think of: whatever they are, the bits are those of
// stage 0 (with accumulation, of stage 2).

#include <fmt/format.h>

#include "stages/base/philox.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/delaying_communicator.hpp"
#include "tests/support/run_ranks.hpp"
#include "lab/failures/wrappers/stage_wrapper.hpp"
#include "tests/support/trainings.hpp"

namespace zerolab::test {
namespace {

/// Draws that a seed decides.
class Dice {
 public:
  explicit Dice(std::uint64_t seed) : random_(seed) {}

  Index below(Index n) { return static_cast<Index>(random_(1, count_++).word[0]) % n; }
  bool coin() { return below(2) == 0; }
  /// Often something that is never reached, or nothing; otherwise up to `most`.
  Index limit(Index most) {
    const Index kind = below(4);
    return kind == 0 ? 0 : kind == 1 ? Index{1} << 40 : below(most);
  }

 private:
  Philox random_;
  std::uint64_t count_ = 0;
};

struct Drawn {
  int ranks = 1;
  Training training;
  std::string text;  // to repeat it by hand
};

Training model(Index number, int stage) {
  return number == 0   ? training_of(tiny_transformer(), stage)
         : number == 1 ? training_of(tiny_mlp(), stage)
                       : training_of_odd_sizes(stage);
}

Drawn draw(std::uint64_t seed) {
  Dice dice(seed);
  Drawn drawn;
  drawn.ranks = 1 + static_cast<int>(dice.below(4));
  const Index which = dice.below(3);
  // stage 3 has most of the settings
  const int stage = dice.coin() ? 3 : 1 + static_cast<int>(dice.below(3));
  drawn.training = model(which, stage);
  drawn.training.steps = 3;
  Settings& settings = drawn.training.settings;
  settings.micro_batch = 1 + dice.below(3);
  settings.gradient_accumulation_steps = 1 + dice.below(2);
  ZeroSettings& zero = settings.zero;
  zero.overlap_comm = dice.coin();
  zero.reduce_scatter = dice.coin();
  zero.contiguous_gradients = dice.coin();
  zero.reduce_bucket_size = 1 + dice.limit(3000);
  zero.prefetch_bucket_size = dice.limit(3000);
  zero.param_persistence_threshold = dice.limit(400);
  zero.model_persistence_threshold = dice.limit(3000);
  zero.max_live_parameters = dice.limit(3000);
  zero.max_reuse_distance = dice.limit(6000);
  drawn.training.check_collectives = dice.below(4) == 0;
  if (dice.below(8) == 0) drawn.training.link = {1e9, 20e-6};
  drawn.text = fmt::format(
      "seed {}: {} ranks, model {}, stage {}, micro batch {}, accumulation {}, overlap {}, "
      "reduce_scatter {}, contiguous {}, reduce bucket {}, prefetch {}, persistence {} and {}, "
      "max_live {}, reuse {}",
      seed, drawn.ranks, which, stage, settings.micro_batch, settings.gradient_accumulation_steps,
      zero.overlap_comm, zero.reduce_scatter, zero.contiguous_gradients, zero.reduce_bucket_size,
      zero.prefetch_bucket_size, zero.param_persistence_threshold, zero.model_persistence_threshold,
      zero.max_live_parameters, zero.max_reuse_distance);
  return drawn;
}

/// The same learning, as plainly as it goes.
Training reference(const Drawn& drawn) {
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
    const Drawn drawn = draw(seed);
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
