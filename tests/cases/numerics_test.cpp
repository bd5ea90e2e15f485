// Kind c of docs/cases.md: the same numbers in every stage, and the right ones.

#include <array>
#include <cmath>

#include "tests/support/catch.hpp"
#include "tests/support/given_weights.hpp"
#include "tests/support/layers.hpp"
#include "tests/support/naive_bigram.hpp"
#include "tests/support/scripted.hpp"
#include "tests/support/tiny_tied.hpp"
#include "tests/support/weight_history.hpp"

using namespace zerolab;
using namespace zerolab::test;

namespace {

constexpr std::array kStages{0, 1, 2, 3};

bool near(double got, double want, double tolerance = 1e-6) {
  return std::abs(got - want) <= tolerance * std::abs(want);
}

// --- B29, B30 ------------------------------------------------------------------------------------

constexpr Index kSamples = 32;  // in each step, 16 for each of two ranks
constexpr Index kVocabulary = 13;

/// The same 32 samples in every step: the rank-th part of them, in as many micro-steps as it takes.
BatchSource same_samples(int ranks, Index micro_batch) {
  return [inner = patterned_batches(kVocabulary), ranks, micro_batch](
             Index, Index position, Index count, Index length, std::int32_t* tokens,
             std::int32_t* targets) {
    const Index micro_step = position / (ranks * micro_batch);
    const Index rank = position / micro_batch % ranks;
    inner(1, rank * (kSamples / ranks) + micro_step * micro_batch, count, length, tokens, targets);
  };
}

/// Four layers of width 16.
Training with_same_samples(int stage, int ranks, Index accumulation) {
  Training training = plain(training_of_chain(
      [](ParameterSet& parameters) {
        Links links{embedding(parameters, kVocabulary, 16)};
        for (int i = 0; i < 3; ++i) {
          links.push_back(linear(parameters, "layers." + std::to_string(i), 16, 16));
          links.push_back(std::make_shared<Gelu>("gelus." + std::to_string(i)));
        }
        links.push_back(linear(parameters, "layers.3", 16, kVocabulary));
        return links;
      },
      kVocabulary, stage));
  training.settings.gradient_accumulation_steps = accumulation;
  training.settings.micro_batch = kSamples / ranks / accumulation;
  training.batches = same_samples(ranks, training.settings.micro_batch);
  return training;
}

// --- B39 -----------------------------------------------------------------------------------------

/// 1 to 16 on average over the four ranks.
float one_to_sixteen(Index element, const Moment& moment) {
  return static_cast<float>(element + 1) + 0.5F * (2 * static_cast<float>(moment.rank) - 3);
}

// --- B44 -----------------------------------------------------------------------------------------

/// Logits that are a row of a table: token 0 costs a loss of 1, token 1 one of 4.
Training priced_tokens(int stage) {
  const Training training = training_of_chain(
      [](ParameterSet& parameters) { return Links{embedding(parameters, 2, 2)}; }, 2, stage);
  return with_weights(plain(training), [](const Parameter&, Index element) {
    const std::array<double, 4> table{0, std::log(std::exp(1.0) - 1), 0,
                                      std::log(std::exp(4.0) - 1)};
    return static_cast<float>(table[static_cast<std::size_t>(element)]);
  });
}

/// The first 7 positions of the global batch are token 0, the next 7 token 1, of which two count;
/// behind them nothing does.
void seven_and_two(Index, Index position, Index count, Index, std::int32_t* tokens,
                   std::int32_t* targets) {
  for (Index i = 0; i < count; ++i) {
    const Index at = position + i;
    tokens[i] = at < 7 ? 0 : 1;
    targets[i] = at < 9 ? 0 : -1;
  }
}

// --- B48 -----------------------------------------------------------------------------------------

/// One weight of two elements, given 1 and 3 by the embedding's side, 10 and 30 by the head's.
Links two_sides(ParameterSet& parameters) {
  Links links{std::make_shared<Blank>(),
              std::make_shared<Scripted>(
                  parameters, "embedding", Shape{2, 1},
                  [](Index, const Moment& moment) { return moment.rank == 0 ? 1.0F : 3.0F; })};
  links.push_back(std::make_shared<Scripted>(
      "head", parameters.at("embedding.weight"),
      [](Index, const Moment& moment) { return moment.rank == 0 ? 10.0F : 30.0F; }));
  return links;
}

}  // namespace

TEST_CASE("B28: a tiny tied model has the same losses and weights in all stages", "[cases]") {
  const auto training = [](int stage) { return training_of_chain(tiny_tied, 4, stage); };
  WeightHistory of_stage_0;
  const auto expected = bits(run(4, with_history(training(0), of_stage_0))[0]);
  REQUIRE(expected.size() == 10);
  for (const int stage : {1, 2, 3}) {
    WeightHistory history;
    const auto now = bits(run(4, with_history(training(stage), history))[0]);
    INFO("stage " << stage << ", largest difference of a weight "
                  << largest_difference(history.latest, of_stage_0.latest));
    CHECK(now == expected);
    CHECK(history.latest == of_stage_0.latest);
  }

  WeightHistory joint;
  run(1, with_history(alone(plain(training(0)), 4), joint));
  for (const int stage : kStages) {
    WeightHistory history;
    run(4, with_history(plain(training(stage)), history));
    CHECK(largest_difference(history.latest, joint.latest) < 1e-6);
  }
}

TEST_CASE("B29: however the same samples are accumulated, gradients and weights are the same",
          "[cases]") {
  for (const Index steps : {1, 20}) {
    WeightHistory joint;
    Training training = with_same_samples(0, 1, 1);
    training.steps = steps;
    run(1, with_history(training, joint));
    for (const int stage : kStages) {
      for (const Index accumulation : {1, 2, 4}) {
        INFO("stage " << stage << ", " << accumulation << " micro-steps, " << steps << " steps");
        training = with_same_samples(stage, 2, accumulation);
        training.steps = steps;
        WeightHistory history;
        run(2, with_history(training, history));
        CHECK(history.latest != history.initial);
        if (steps == 1) CHECK(largest_difference(history.gradient, joint.gradient) < 1e-6);
        CHECK(largest_difference(history.latest, joint.latest) < 1e-6);
      }
    }
  }
}

TEST_CASE("B30: the gradient norm depends neither on accumulation nor on stage nor on ranks",
          "[cases]") {
  struct Run {
    int stage, ranks;
    Index accumulation;
    bool overlap;
    Dtype dtype;
  };
  const auto norms = [](const Run& of) {
    Training training = with_same_samples(of.stage, of.ranks, of.accumulation);
    training.settings.optimizer.learning_rate = 0;
    training.settings.gradient_clipping = 1e9;
    training.settings.zero.overlap_comm = of.overlap;
    training.settings.zero.reduce_bucket_size = 100;
    training.settings.dtype = of.dtype;
    training.settings.loss_scale.loss_scale = 1024;
    training.steps = 3;
    const RankReport report = run(of.ranks, training)[0];
    std::vector<double> result;
    for (const StepResult& step : report.steps) {
      CHECK_FALSE(step.skipped);
      result.push_back(step.grad_norm);
    }
    return result;
  };
  const double expected = norms({0, 1, 1, false, Dtype::fp32})[0];
  REQUIRE(expected > 0.01);
  for (const auto& [dtype, rounding] :
       {std::pair{Dtype::fp32, 1e-6}, {Dtype::fp16, 0x1p-11}, {Dtype::bf16, 0x1p-8}}) {
    for (const int ranks : {1, 2, 4}) {
      for (const Index accumulation : {Index{1}, Index{4}}) {
        std::vector<double> of_stage_0;
        for (const int stage : kStages) {
          for (const bool overlap : {false, true}) {
            const std::vector<double> now = norms({stage, ranks, accumulation, overlap, dtype});
            INFO(name_of(dtype) << ", stage " << stage << ", " << ranks << " ranks, "
                                << accumulation << " micro-steps, overlap " << overlap);
            for (const double norm : now) {
              CHECK(norm == now[0]);
              CHECK(near(norm, expected, 2 * rounding));
            }
            if (of_stage_0.empty()) of_stage_0 = now;
            if (accumulation == 1) CHECK(now == of_stage_0);
          }
        }
      }
    }
  }
}

TEST_CASE("B35: one step over different data on each rank is the step over all of it", "[cases]") {
  constexpr Index kWidth = 3;
  for (const int stage : kStages) {
    for (const int ranks : {2, 3}) {
      INFO("stage " << stage << ", " << ranks << " ranks");
      Training training = plain(training_of_chain(bigram(7, kWidth), 7, stage));
      training.steps = 1;
      WeightHistory history;
      const auto reports = run(ranks, with_history(training, history));

      const Index count = ranks * training.settings.micro_batch;
      std::vector<std::int32_t> tokens(static_cast<std::size_t>(count));
      std::vector<std::int32_t> targets(tokens.size());
      training.batches(1, 0, count, 1, tokens.data(), targets.data());
      NaiveBigram naive(history.initial, 7, kWidth);
      const double loss = naive.step(tokens, targets, 0.1F);
      CHECK(near(reports[0].steps[0].loss, loss));
      CHECK(near(reports[0].steps[0].grad_norm, naive.gradient_norm()));
      CHECK(largest_difference(history.latest, naive.weights()) < 1e-6);

      // 21 + 21 + 7 elements, each reduced once, and no more of them than padding needs
      const Op op = stage == 0 ? Op::all_reduce : Op::reduce_scatter;
      const Index padded = stage < 3 ? (ranks == 2 ? 52 : 54) : (ranks == 2 ? 52 : 51);
      for (const RankReport& report : reports) {
        CHECK(report.comm.traffic.at(op).elements == padded);
      }
    }
  }
}

TEST_CASE("B39: all ranks have the norm of the mean gradient, before clipping, and clip alike",
          "[cases]") {
  for (const int stage : kStages) {
    INFO("stage " << stage);
    Training training = training_of_script({{16}}, one_to_sixteen, stage);
    training.settings.gradient_clipping = 1;
    training.steps = 1;
    WeightHistory history;
    const auto reports = run(4, with_history(training, history));
    const double norm = std::sqrt(1496.0);
    for (const RankReport& report : reports) {
      CHECK(near(report.steps[0].grad_norm, norm, 1e-12));
      CHECK(report.steps[0].hash == reports[0].steps[0].hash);
    }
    Weights clipped = history.initial;
    for (std::size_t i = 0; i < 16; ++i) {
      clipped[0][i] -= static_cast<float>(static_cast<double>(i + 1) / norm);
    }
    CHECK(largest_difference(history.latest, clipped) < 1e-6);
  }
}

TEST_CASE("B44: the loss is the mean over the tokens that count, whatever rank they are on",
          "[cases]") {
  for (const int stage : kStages) {
    // two micro-steps; two ranks; three of them, the last without a token that counts
    for (const auto& [ranks, accumulation] : {std::pair{1, 2}, {2, 1}, {3, 1}}) {
      INFO("stage " << stage << ", " << ranks << " ranks, " << accumulation << " micro-steps");
      Training training = priced_tokens(stage);
      training.settings.micro_batch = 7;
      training.settings.gradient_accumulation_steps = accumulation;
      training.batches = seven_and_two;
      training.validation = seven_and_two;
      training.validation_sequences = 7 * ranks * accumulation;
      training.steps = 1;
      WeightHistory history;
      const RankReport report = run(ranks, with_history(training, history))[0];
      // oneDNN's logarithm of a softmax is off by 2.3e-6 here (AVX2)
      CHECK(std::abs(report.steps[0].loss - 15.0 / 9) < 4e-6);
      // by row of the table: the share of its tokens times (probabilities - target)
      const std::array<double, 2> row{7.0 / 9 * (std::exp(-1.0) - 1),
                                      2.0 / 9 * (std::exp(-4.0) - 1)};
      CHECK(near(report.steps[0].grad_norm, std::sqrt(2 * (row[0] * row[0] + row[1] * row[1]))));
      for (std::size_t i = 0; i < 4; ++i) {
        const double gradient = i % 2 == 0 ? row[i / 2] : -row[i / 2];
        const double moved =
            static_cast<double>(history.initial[0][i]) - static_cast<double>(history.latest[0][i]);
        CHECK(std::abs(moved - 0.1 * gradient) < 1e-6);
      }
      // the same tokens after the update: cheaper, and a mean over nine as well
      REQUIRE(report.validation.size() == 1);
      const auto loss_of = [&](std::size_t token) {
        const double difference = static_cast<double>(history.latest[0][2 * token + 1]) -
                                  static_cast<double>(history.latest[0][2 * token]);
        return std::log(1 + std::exp(difference));
      };
      CHECK(std::abs(report.validation[0].loss - (7 * loss_of(0) + 2 * loss_of(1)) / 9) < 4e-6);
    }
  }
}

TEST_CASE("B48: the uses of a tied weight are added on each rank, then averaged once", "[cases]") {
  for (const int stage : kStages) {
    INFO("stage " << stage);
    const Training training = plain(training_of_chain(two_sides, kBlankVocabulary, stage), 0.5F);
    WeightHistory history;
    const auto reports = run(2, with_history(training, history));
    CHECK(history.gradient == Weights{{22, 22}});
    // ten steps of 22 / 2, so that both names, which are one weight, have gone down by 110
    for (const std::size_t i : {0U, 1U}) {
      CHECK(near(history.initial[0][i] - history.latest[0][i], 110, 1e-5));
    }
    const Op op = stage == 0 ? Op::all_reduce : Op::reduce_scatter;
    for (const RankReport& report : reports) CHECK(report.comm.traffic.at(op).calls == 10);
  }
}
