// Activation checkpointing: the same bits from fewer activations; B06, B12, behaviours 20 and 21.

#include "lab/failures/wrappers/stage_wrapper.hpp"
#include "stages/model/transformer.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/described_training.hpp"
#include "tests/support/live_parameters.hpp"
#include "tests/support/observed.hpp"

using namespace zerolab;
using namespace zerolab::test;

namespace {

constexpr std::array kStages{0, 1, 2, 3};
constexpr Index kBytes = 4;  // fp32

Training transformer(int stage, bool recomputed, Index layers = 2) {
  ModelDescription model = tiny_transformer();
  model.num_layers = layers;
  Training training = training_of(model, stage);
  training.steps = 3;
  training.settings.activation_checkpointing = recomputed;
  return training;
}

Part recomputed(Part group) {
  group.recomputed = true;
  return group;
}

/// A block that two inputs run through, one after the other, both times recomputed.
DescribedModel siamese() {
  const Part block =
      recomputed(group_part("block", {norm_part("norm", 5), linear_part("up", 5, 7),
                                      gelu_part("gelu", 7), linear_part("down", 7, 5)}));
  DescribedModel model{.vocabulary = 7, .width = 5, .tied = true};
  model.parts = {block, linear_part("between", 5, 5), block};
  return model;
}

/// A frozen layer and one that learns, in a block that is recomputed, above a frozen embedding: its
/// input needs no gradient.
DescribedModel frozen_in_block() {
  DescribedModel model{.vocabulary = 7, .width = 5};
  model.parts = {recomputed(group_part(
                     "block", {linear_part("frozen", 5, 3), gelu_part("gelu", 3),
                               linear_part("learning", 3, 5), linear_part("frozen above", 5, 5)})),
                 linear_part("head", 5, 7)};
  model.frozen = {"embedding.weight", "frozen.weight", "frozen.bias", "frozen above.weight",
                  "frozen above.bias"};
  return model;
}

/// Elements that are gathered at the end of every pass.
class AfterPasses : public StageWrapper {
 public:
  AfterPasses(std::unique_ptr<Stage> stage, Runtime& runtime, std::vector<Index>& bytes)
      : StageWrapper(std::move(stage), runtime), bytes_(bytes) {}

  void end_pass() override {
    // Before the stage tidies up: what modules have left by themselves.
    bytes_.push_back(runtime().ledger.live()[Category::gather_buffers]);
    StageWrapper::end_pass();
  }

 private:
  std::vector<Index>& bytes_;
};

Index sent(const RankReport& report, Op op) {
  const auto entry = report.comm.traffic.find(op);
  return entry == report.comm.traffic.end() ? 0 : entry->second.bytes_sent;
}

}  // namespace

TEST_CASE("activation checkpointing changes no bit, in any stage at 1 to 4 ranks", "[engine]") {
  for (const int ranks : {1, 2, 3, 4}) {
    const auto expected = bits(run(ranks, transformer(0, false))[0]);
    for (const int stage : kStages) {
      INFO("stage " << stage << ", " << ranks << " ranks");
      Training training = transformer(stage, true);
      CHECK(bits(run(ranks, training)[0]) == expected);
      // with what stage 3 may do ahead of time, and a trace that knows the second forward
      training.settings.zero.prefetch_bucket_size = 400;
      training.settings.zero.max_reuse_distance = 700;
      CHECK(bits(run(ranks, training)[0]) == expected);
    }
  }
}

TEST_CASE("recomputed blocks keep their input only: activations fall by what the rest takes",
          "[engine]") {
  // A block keeps, of R rows, width C, h heads and sequences of length T, beside its input: norm1's
  // mean and variance and its output (2R + RC), qkv (3RC), probabilities (R h T), mixed values
  // (RC), the middle (RC), norm2's (2R + RC), up's (4RC) and gelu's output (4RC).
  const Index rows = 3 * 7, width = 9, heads = 3, length = 7;
  const Index block = 4 * rows + 15 * rows * width + rows * heads * length;
  for (const Index layers : {1, 2, 5}) {
    const auto peak = [&](bool recomputed) {
      return run(2, transformer(3, recomputed, layers))[0]
          .memory[0]
          .category_peak[Category::activations];
    };
    INFO(layers << " layers");
    // One block's activations are there at a time. Kept, all blocks' are when backward begins.
    CHECK(peak(false) - peak(true) == (layers - 1) * block * kBytes);
  }
}

TEST_CASE("stage 3 gathers a recomputed block's parameters three times", "[engine]") {
  const auto gathered = [](bool recomputed, Index layers) {
    Training training = transformer(3, recomputed, layers);
    training.steps = 1;
    return sent(run(3, training)[0], Op::all_gather);
  };
  Index block = 0;  // of padded elements
  for (const Index size : {9, 9, 243, 27, 81, 9, 9, 9, 324, 36, 324, 9}) {
    block += (size + 2) / 3 * 3;
  }
  const Index once = block * kBytes * 2 / 3;
  for (const Index layers : {1, 2, 3}) {
    CHECK(gathered(true, layers) - gathered(false, layers) == layers * once);
  }
}

TEST_CASE("B06: the gradient of a shared block that is recomputed is complete, and reduced once",
          "[cases]") {
  CHECK(wrong_in_any_stage(siamese()).empty());
  for (const int stage : kStages) {
    INFO("stage " << stage);
    Training training = training_of_described(siamese(), stage);
    training.steps = 1;
    training.settings.zero.reduce_bucket_size = 1;
    // down, up (bias and weight each), norm, between, and the embedding: each parameter once
    CHECK(reductions(2, training).size() == 9);
  }
}

TEST_CASE("B12: frozen weights are there for a recomputation and gone after every micro-step",
          "[cases]") {
  const auto twice = [](Training& training) { training.settings.gradient_accumulation_steps = 2; };
  CHECK(wrong_in_any_stage(frozen_in_block()).empty());
  CHECK(wrong_in_any_stage(frozen_in_block(), twice).empty());
  Training training = training_of_described(frozen_in_block(), 3);
  twice(training);
  std::vector<Index> left;
  run_ranks(1, [&](Communicator& communicator) {
    Recorder recorder(communicator.rank());
    train(communicator, recorder, with_stage<AfterPasses>(training, std::ref(left)));
  });
  CHECK(left == std::vector<Index>(static_cast<std::size_t>(2 * training.steps), 0));
}

TEST_CASE("behaviour 20: a module whose input needs no gradient lets its parameters go",
          "[engine]") {
  DescribedModel model{.vocabulary = 7, .width = 5};
  model.parts = {linear_part("first", 5, 5), linear_part("head", 5, 7)};
  model.frozen = {"embedding.weight"};
  CHECK(wrong_in_any_stage(model).empty());
  std::vector<Index> left;
  run_ranks(1, [&](Communicator& communicator) {
    Recorder recorder(communicator.rank());
    train(communicator, recorder,
          with_stage<AfterPasses>(training_of_described(model, 3), std::ref(left)));
  });
  CHECK(left == std::vector<Index>(3, 0));
}

TEST_CASE("behaviour 21: frozen parameters are gathered and let go with every recomputation",
          "[engine]") {
  Training training = training_of_described(frozen_in_block(), 3);
  training.steps = 2;
  using Moves = std::vector<std::string>;
  const Moves moves =
      observed<Moves>(3, training, [](Moves& list, const Stamp& stamp, const Event& event) {
        const auto* param = std::get_if<ParamEvent>(&event);
        if (param == nullptr || param->parameter != "frozen above.weight") return;
        list.push_back(std::string(name_of(stamp.phase)) + " " + std::string(param->to));
      })[0];
  Moves expected;
  for (int step = 0; step < 2; ++step) {
    for (const std::string phase : {"forward", "backward", "backward"}) {
      for (const std::string to : {"INFLIGHT", "AVAILABLE", "NOT_AVAILABLE"}) {
        expected.push_back(phase + " " + to);
      }
    }
  }
  CHECK(moves == expected);
}

TEST_CASE("a model without blocks has nothing to recompute") {
  for (const bool recomputed : {false, true}) {
    Training training = training_of(tiny_mlp(), 3);
    training.settings.activation_checkpointing = recomputed;
    CHECK(bits(run(2, training)[0]) == bits(run(2, training_of(tiny_mlp(), 0))[0]));
  }
}
