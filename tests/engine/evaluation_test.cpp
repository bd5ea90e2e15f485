// Evaluations between steps: with other batches than training, in every stage.

#include "tests/support/catch.hpp"
#include "tests/support/described_training.hpp"
#include "tests/support/plain_model.hpp"
#include "tests/support/rank.hpp"
#include "tests/support/run_ranks.hpp"
#include "tests/support/thrown.hpp"

namespace zerolab::test {
namespace {

constexpr std::array kStages{0, 1, 2, 3};

DescribedModel model() {
  DescribedModel model{.vocabulary = 7, .width = 5, .tied = true};
  Part block = group_part("block", {norm_part("norm", 5), linear_part("up", 5, 9),
                                    gelu_part("gelu", 9), linear_part("down", 9, 5)});
  block.residual = block.recomputed = true;
  model.parts = {block, linear_part("last", 5, 5)};
  model.frozen = {"up.bias"};
  return model;
}

struct Trained {
  std::vector<std::string> bits;
  std::vector<double> losses;  // of evaluations
  bool rests = true;
};

/// Four steps; with `shapes`, evaluations of these between them.
std::vector<Trained> trained(int ranks, int stage, const std::vector<BatchShape>& shapes) {
  Training training = training_of_described(model(), stage);
  training.settings.zero.prefetch_bucket_size = 40;
  return run_ranks(ranks, [&](Communicator& communicator) {
    Rank rank(communicator, training);
    Trained result;
    RankReport report;
    for (int step = 0; step < 4; ++step) {
      report.steps.push_back(rank.engine.step(training.batches));
      for (const BatchShape& shape : shapes) {
        result.losses.push_back(rank.engine.evaluate(training.batches, 12, shape));
        result.rests = result.rests && rank.rests();
      }
    }
    result.bits = bits(report);
    return result;
  });
}

TEST_CASE("evaluations with other lengths and batches change no bit of the training", "[engine]") {
  const std::vector<BatchShape> shapes{{1, 2}, {4, 5}, {2, 3}};
  for (const int ranks : {1, 2, 3, 4}) {
    const std::vector<Trained> expected = trained(ranks, 0, shapes);
    CHECK(expected[0].bits == trained(ranks, 0, {})[0].bits);
    for (const int stage : kStages) {
      INFO("stage " << stage << ", " << ranks << " ranks");
      for (const Trained& each : trained(ranks, stage, shapes)) {
        CHECK(each.rests);
        CHECK(each.bits == expected[0].bits);
        CHECK(each.losses == expected[0].losses);
      }
    }
  }
}

TEST_CASE("an evaluation's loss is that of plain arithmetic on all of its sequences", "[engine]") {
  const Training training = training_of_described(model(), 3);
  const BatchShape shape{2, 5};
  for (const int ranks : {1, 2, 3}) {
    const auto got = run_ranks(ranks, [&](Communicator& communicator) {
      Rank rank(communicator, training);
      rank.engine.step(training.batches);
      NamedWeights weights;
      for (const Parameter& parameter : rank.model->parameters()) {
        const std::vector<float> values = rank.values(parameter.name());
        weights[parameter.name()].assign(values.begin(), values.end());
      }
      return std::pair{rank.engine.evaluate(training.batches, 12, shape), weights};
    })[0];
    const Index micro_batches = 12 / shape.sequences;
    double expected = 0;
    for (Index i = 0; i < micro_batches; ++i) {
      std::vector<std::int32_t> tokens(10), targets(10);
      training.batches(0, i * shape.sequences, shape.sequences, shape.length, tokens.data(),
                       targets.data());
      expected += differentiate_plainly(model(), got.second, 0, tokens, targets).loss /
                  static_cast<double>(micro_batches);
    }
    CHECK(got.first == Approx(expected).epsilon(1e-6));
  }
}

TEST_CASE(
    "a sequence that the model cannot see whole is refused on every rank, and training goes on",
    "[engine]") {
  for (const int stage : kStages) {
    for (const bool transformer : {true, false}) {
      const Training training =
          transformer ? training_of(tiny_transformer(), stage) : training_of(tiny_mlp(), stage);
      const auto messages = run_ranks(3, [&](Communicator& communicator) {
        Rank rank(communicator, training);
        rank.engine.step(training.batches);
        const auto error = thrown_by([&] {
          rank.engine.evaluate(training.batches, 6, BatchShape{2, training.sequence_length + 1});
        });
        rank.engine.step(training.batches);
        return error && rank.rests() ? error->what_happened() : "";
      });
      for (const std::string& message : messages) {
        CHECK(message == (transformer ? "a sequence of 8 tokens for a model that has 7 positions"
                                      : "a sequence of 4 tokens for a model that sees exactly 3"));
      }
    }
  }
}

}  // namespace
}  // namespace zerolab::test
