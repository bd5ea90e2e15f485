// Kind a of docs/cases.md: a parameter that several modules, or several runs of one, use.

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>

#include "lab/failures/wrappers/stage_wrapper.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/chain.hpp"
#include "tests/support/given_weights.hpp"
#include "tests/support/layers.hpp"
#include "tests/support/run_ranks.hpp"
#include "tests/support/weight_history.hpp"

using namespace zerolab;
using namespace zerolab::test;

namespace {

constexpr std::array kStages{0, 1, 2, 3};
constexpr Index kWidth = 8;
constexpr Index kVocabulary = 11;
constexpr Index kUnlimited = Index{1} << 40;

// --- B05 -----------------------------------------------------------------------------------------

/// A linear layer applied four times, or four layers once each.
Chain four_layers(bool shared) {
  return [shared](ParameterSet& parameters) {
    Links links{embedding(parameters, kVocabulary, kWidth)};
    const auto layer = linear(parameters, "layer", kWidth, kWidth);
    for (int i = 0; i < 4; ++i) {
      links.push_back(shared || i == 0
                          ? layer
                          : linear(parameters, "layer." + std::to_string(i), kWidth, kWidth));
    }
    links.push_back(linear(parameters, "head", kWidth, kVocabulary));
    return links;
  };
}

/// Small weights that depend on the element and on whether they are a layer's, not on which one's.
float equal_in_all_layers(const Parameter& parameter, Index element) {
  const bool of_layer = parameter.name().find("layer") == 0;
  const float phase = of_layer ? 0.7F : 1.9F;
  return 0.6F * std::sin(phase * static_cast<float>(element + parameter.shape()[0]));
}

/// The moves of one parameter on rank 0 in one step, and how many reductions were its.
struct Life {
  std::vector<std::string> moves;
  int reductions = 0;
};

Life life_of(const std::string& parameter, Training training) {
  training.steps = 1;
  training.settings.zero.reduce_bucket_size = 1;
  return run_ranks(2, [&](Communicator& communicator) {
    Recorder recorder(communicator.rank());
    Life life;
    recorder.observe([&](const Stamp& stamp, const Event& event) {
      if (const auto* moved = std::get_if<ParamEvent>(&event)) {
        if (moved->parameter != parameter) return;
        life.moves.push_back(std::string(name_of(stamp.phase)) + " " + std::string(moved->to));
      } else if (const auto* comm = std::get_if<CommEvent>(&event)) {
        const bool reduces = comm->op == "reduce_scatter" || comm->op == "all_reduce";
        if (reduces && comm->owner == parameter) ++life.reductions;
      }
    });
    train(communicator, recorder, training);
    return life;
  })[0];
}

// --- B08 -----------------------------------------------------------------------------------------

/// Runs the inner modules once for the first half of the tokens and once for the second.
class TwoForwards : public Module {
 public:
  explicit TwoForwards(Links links) : Module("two forwards"), inner_("inner", std::move(links)) {
    adopt(inner_);
  }

 protected:
  Tensor do_forward(const Tensor& tokens) override {
    const Tensor first = inner_.forward(half(tokens, 0));
    const Tensor second = inner_.forward(half(tokens, 1));
    Tensor both = activation({first.rows() * 2, first.width()}, "both outputs");
    std::copy_n(first.floats(), first.numel(), both.floats());
    std::copy_n(second.floats(), second.numel(), both.floats() + first.numel());
    return both;
  }
  Tensor do_backward(const Tensor& gradient) override {
    inner_.backward(half(gradient, 1));
    inner_.backward(half(gradient, 0));
    return {};
  }

 private:
  Tensor half(const Tensor& whole, Index which) const {
    const Index rows = whole.rows() / 2;
    Tensor part = activation({rows, whole.width()}, "half", whole.dtype());
    const Index bytes = part.numel() * size_of(whole.dtype());
    std::memcpy(part.ints(), whole.ints() + which * part.numel(), static_cast<std::size_t>(bytes));
    return part;
  }

  ChainModule inner_;
};

Training with_forwards(int forwards, int stage) {
  Training training = plain(training_of_chain(
      [forwards](ParameterSet& parameters) {
        Links links{embedding(parameters, kVocabulary, kWidth),
                    linear(parameters, "layer", kWidth, kWidth),
                    linear(parameters, "head", kWidth, kVocabulary)};
        return forwards == 2 ? Links{std::make_shared<TwoForwards>(links)} : links;
      },
      kVocabulary, stage));
  training.settings.micro_batch = 6;
  return training;
}

// --- B14 -----------------------------------------------------------------------------------------

/// What a module found in the tied table when it ran, by module.
using Seen = std::map<std::string, std::vector<float>>;

/// Looks at the table that embedding and head share, each time one of them is about to run.
class TableReader : public StageWrapper {
 public:
  TableReader(std::unique_ptr<Stage> stage, Runtime& runtime, Seen& seen)
      : StageWrapper(std::move(stage), runtime), seen_(seen) {}

  void fetch(const Visit& visit) override {
    StageWrapper::fetch(visit);
    for (const Parameter* parameter : visit.module.reads()) {
      if (parameter->name() != "token_embedding.weight") continue;
      const float* table = parameter->data;
      seen_[visit.module.name()].assign(table, table + parameter->numel());
    }
  }

 private:
  Seen& seen_;
};

Seen tables_of(Communicator& communicator, const Training& training) {
  Seen seen;
  Recorder recorder(communicator.rank());
  train(communicator, recorder, with_stage<TableReader>(training, std::ref(seen)));
  return seen;
}

}  // namespace

TEST_CASE("B05: the gradient of a layer applied four times is the sum of four contributions",
          "[cases]") {
  const auto training = [](bool shared, int stage) {
    Training result = with_weights(
        plain(training_of_chain(four_layers(shared), kVocabulary, stage)), equal_in_all_layers);
    result.steps = 1;
    return result;
  };
  // four layers of their own, on one rank: parameters 1, 3, 5, 7 are weights, 2, 4, 6, 8 biases
  WeightHistory unrolled;
  run(1, with_history(alone(training(false, 0), 2), unrolled));
  Weights expected{unrolled.gradient[1], unrolled.gradient[2]};
  for (const std::size_t layer : {3U, 5U, 7U}) {
    for (const std::size_t p : {0U, 1U}) {
      for (std::size_t i = 0; i < expected[p].size(); ++i) {
        expected[p][i] += unrolled.gradient[layer + p][i];
      }
    }
  }
  std::vector<std::string> of_stage_0;
  for (const int stage : kStages) {
    INFO("stage " << stage);
    WeightHistory history;
    const auto now = bits(run(2, with_history(training(true, stage), history))[0]);
    CHECK(largest_difference({history.gradient[1], history.gradient[2]}, expected) < 1e-6);
    if (stage == 0) of_stage_0 = now;
    CHECK(now == of_stage_0);
    CHECK(life_of("layer.weight", training(true, stage)).reductions == 1);
  }
}

TEST_CASE("B05: stage 3 has the layer for each of its eight runs and lets it go after each",
          "[cases]") {
  const Life life = life_of("layer.weight", training_of_chain(four_layers(true), kVocabulary, 3));
  std::vector<std::string> expected;
  for (const std::string pass : {"forward", "backward"}) {
    for (int visit = 0; visit < 4; ++visit) {
      for (const std::string to : {"INFLIGHT", "AVAILABLE", "NOT_AVAILABLE"}) {
        expected.push_back(pass + " " + to);
      }
    }
  }
  CHECK(life.moves == expected);
}

TEST_CASE("B08: two forwards and one backward give the gradient of the joint batch", "[cases]") {
  WeightHistory joint;
  run(1, with_history(alone(with_forwards(1, 0), 2), joint));
  std::vector<std::string> of_stage_0;
  for (const int stage : kStages) {
    // 64 elements are layer.weight: a bucket is full between the uses of two parameters
    for (const Index bucket : {kUnlimited, Index{64}, Index{1}}) {
      INFO("stage " << stage << ", bucket " << bucket);
      Training training = with_forwards(2, stage);
      training.settings.zero.reduce_bucket_size = bucket;
      WeightHistory history;
      const auto now = bits(run(2, with_history(training, history))[0]);
      CHECK(largest_difference(history.latest, joint.latest) < 1e-6);
      CHECK(largest_difference(history.gradient, joint.gradient) < 1e-6);
      if (of_stage_0.empty()) of_stage_0 = now;
      CHECK(now == of_stage_0);
      if (bucket == 1) CHECK(life_of("layer.weight", training).reductions == 1);
    }
  }
}

TEST_CASE("B14: a tied weight has one owner, one state and one value", "[cases]") {
  Training training = training_of(tiny_transformer(), 3);
  training.steps = 6;
  std::vector<Index> sizes{19 * 9, 7 * 9};
  for (int block = 0; block < 2; ++block) {
    for (const Index size : {9, 9, 243, 27, 81, 9, 9, 9, 324, 36, 324, 9}) sizes.push_back(size);
  }
  sizes.insert(sizes.end(), {9, 9});
  Index unique = 0;
  Index pieces = 0;
  for (const Index size : sizes) {
    unique += size;
    pieces += (size + 1) / 2;
  }
  for (const RankReport& report : run(2, training)) {
    CHECK(report.parameters == unique);
    for (const MemoryUse& memory : report.memory) {
      CHECK(memory.steady[Category::parameters] == pieces * 4);
      CHECK(memory.steady[Category::optimizer] == 2 * pieces * 4);
    }
  }

  // Five updates are made when step 6 begins: every rank and both modules read the same bytes.
  const auto seen =
      run_ranks(2, [&](Communicator& communicator) { return tables_of(communicator, training); });
  const std::vector<float>& table = seen[0].at("head");
  REQUIRE(table.size() == 19 * 9);
  for (const Seen& of_rank : seen) {
    CHECK(of_rank.size() == 2);
    CHECK(of_rank.at("head") == table);
    CHECK(of_rank.at("token_embedding") == table);
  }
  CHECK(bits(run(2, training)[0]) == [&] {
    training.settings.zero.stage = 0;
    return bits(run(2, training)[0]);
  }());
}
