// Leaf modules: fetched together, free inside; behaviours 22 and 29.

#include <algorithm>
#include <set>

#include "stages/model/model.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/described_training.hpp"
#include "tests/support/observed.hpp"
#include "tests/support/thrown.hpp"

using namespace zerolab;
using namespace zerolab::test;

namespace {

constexpr std::array kStages{0, 1, 2, 3};

Part when(When condition, Part group) {
  group.when = condition;
  return group;
}

/// Two experts, of which the data chooses one: ranks choose differently.
DescribedModel experts(bool leaf) {
  DescribedModel model{.vocabulary = 7, .width = 5};
  Part both = group_part(
      "experts", {when(When::even_batch,
                       group_part("first", {linear_part("first.up", 5, 3), gelu_part("gelu", 3),
                                            linear_part("first.down", 3, 5)})),
                  when(When::odd_batch, group_part("second", {linear_part("second.only", 5, 5)}))});
  both.leaf = leaf;
  model.parts = {norm_part("norm", 5), both, linear_part("head", 5, 7)};
  return model;
}

/// Long enough for the ranks to choose differently, which a test holds.
Training training_of_experts(bool leaf, int stage) {
  Training training = training_of_described(experts(leaf), stage);
  training.steps = 6;
  return training;
}
void six_steps(Training& training) { training.steps = 6; }

using Texts = std::vector<std::string>;

Texts gathers_of(const Training& training) {
  return observed<Texts>(3, training, [](Texts& texts, const Stamp&, const Event& event) {
    const auto* comm = std::get_if<CommEvent>(&event);
    if (comm != nullptr && comm->op == "all_gather") texts.emplace_back(comm->owner);
  })[0];
}

}  // namespace

TEST_CASE("behaviour 22: experts that the data chooses train in a leaf, without a deadlock",
          "[engine]") {
  CHECK(wrong_in_any_stage(experts(true), six_steps).empty());
  // with every collective compared before data moves, and micro-steps that choose differently
  CHECK(wrong_in_any_stage(experts(true), [](Training& training) {
          six_steps(training);
          training.check_collectives = true;
          training.settings.gradient_accumulation_steps = 3;
          training.settings.zero.prefetch_bucket_size = 30;
        }).empty());
}

TEST_CASE("the ranks do choose differently, and an expert that a rank did not use has zero there",
          "[engine]") {
  // What each of four ranks would do alone: which experts have a gradient in the sixth step?
  const Training training = training_of_experts(true, 0);
  std::set<bool> used_first;
  for (const Index rank : {0, 1, 2, 3}) {
    Training alone = training;
    alone.batches = [batches = training.batches, rank](Index step, Index, Index count, Index length,
                                                       std::int32_t* tokens,
                                                       std::int32_t* targets) {
      batches(step, 2 * rank, count, length, tokens, targets);
    };
    WeightHistory history;
    run(1, with_history(alone, history));
    const auto used = [&](std::string_view name) {
      const auto id = static_cast<std::size_t>(training.build()->parameters().at(name).id());
      const std::vector<float>& gradient = history.gradient[id];
      return std::any_of(gradient.begin(), gradient.end(), [](float g) { return g != 0; });
    };
    CHECK(used("first.up.weight") != used("second.only.weight"));
    used_first.insert(used("first.up.weight"));
  }
  CHECK(used_first.size() == 2);
}

TEST_CASE(
    "behaviour 29: gradients that appear on some ranks or in some steps only are equal in all "
    "stages",
    "[engine]") {
  for (const int ranks : {1, 2, 3, 4}) {
    // without a leaf only stage 3 has to know beforehand what runs
    const auto expected = bits(run(ranks, training_of_experts(true, 0))[0]);
    for (const int stage : {0, 1, 2}) {
      INFO("stage " << stage << ", " << ranks << " ranks");
      CHECK(bits(run(ranks, training_of_experts(false, stage))[0]) == expected);
    }
  }
  DescribedModel some_steps{.vocabulary = 7, .width = 5};
  some_steps.parts = {
      when(When::odd_steps, group_part("sometimes", {linear_part("sometimes.layer", 5, 5)})),
      when(When::never, group_part("never", {linear_part("never.layer", 5, 5)})),
      linear_part("head", 5, 7)};
  // the last of all is never used: nothing may wait for it
  some_steps.parts.push_back(when(When::never, group_part("after", {linear_part("last", 7, 7)})));
  CHECK(wrong_in_any_stage(some_steps).empty());
}

TEST_CASE("stage 3 gathers a leaf's parameters together and the rest module by module",
          "[engine]") {
  Training training = training_of_described(experts(true), 3);
  training.steps = 1;
  CHECK(gathers_of(training) ==
        Texts{"embedding.weight", "norm.weight .. norm.bias (2 parameters)",
              "first.up.weight .. second.only.bias (6 parameters)",
              "head.weight .. head.bias (2 parameters)", "head.weight .. head.bias (2 parameters)",
              "first.up.weight .. second.only.bias (6 parameters)",
              "norm.weight .. norm.bias (2 parameters)", "embedding.weight"});
}

TEST_CASE("leaves are named by class, by name and by the end of a name, as in DeepSpeed",
          "[engine]") {
  const auto gathers = [](const LeafModules& leaves) {
    Training training = training_of(tiny_transformer(), 3);
    training.steps = 1;
    training.settings.zero.leaf_modules = leaves;
    return gathers_of(training).size();
  };
  // forward and backward: two embeddings, the final norm and the head beside the blocks
  const std::size_t rest = 2 * 4;
  CHECK(gathers({}) == rest + 2 * 2 * 6);
  CHECK(gathers({{"TransformerBlock"}, {}, {}}) == rest + 2 * 2);
  CHECK(gathers({{}, {"blocks.1"}, {}}) == rest + 2 * (6 + 1));
  CHECK(gathers({{}, {}, {".attention"}}) == rest + 2 * 2 * 5);
  for (const int stage : kStages) {
    Training training = training_of(tiny_transformer(), stage);
    const auto expected = bits(run(3, training)[0]);
    training.settings.zero.leaf_modules.classes = {"TransformerBlock"};
    CHECK(bits(run(3, training)[0]) == expected);
  }
}

TEST_CASE("a leaf that the model does not have is refused with the nearest name", "[engine]") {
  Training training = training_of(tiny_transformer(), 3);
  training.settings.zero.leaf_modules.classes = {"TransformersBlock"};
  const auto error = thrown_by([&] { run(2, training); });
  REQUIRE(error);
  CHECK(error->code() == Code::config_value);
  CHECK(error->what_happened() ==
        "zero_optimization.leaf_module.classes has 'TransformersBlock', which is no module of this "
        "model; did you mean TransformerBlock?");
}
