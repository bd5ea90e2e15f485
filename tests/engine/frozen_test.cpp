// Frozen parameters: read like any other, without gradient, moments and their bytes; B11.

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
constexpr Index kBytes = 4;  // fp32

Index up_to_multiple(Index value, Index multiple) {
  while (value % multiple != 0) ++value;
  return value;
}

/// Four layers, of which three are frozen; the last of all is.
DescribedModel four_layers() {
  DescribedModel model{.vocabulary = 7, .width = 5};
  model.parts = {linear_part("first", 5, 3), norm_part("second", 3), gelu_part("gelu", 3),
                 linear_part("third", 3, 9), linear_part("head", 9, 7)};
  model.frozen = {"first.weight", "first.bias", "third.weight",
                  "third.bias",   "head.bias",  "head.weight"};
  return model;
}
// Elements by hand: embedding; first; second; third; head.
const std::vector<Index> kTrained{35, 3, 3};
const std::vector<Index> kFrozen{15, 3, 27, 9, 63, 7};

/// Nothing up to the layer `middle` is trained.
DescribedModel frozen_below() {
  DescribedModel model{.vocabulary = 7, .width = 5};
  model.parts = {linear_part("low", 5, 3), gelu_part("gelu", 3), linear_part("middle", 3, 3),
                 linear_part("head", 3, 7)};
  model.frozen = {"embedding.weight", "low.weight", "low.bias"};
  return model;
}

Index sum(const std::vector<Index>& sizes) {
  Index total = 0;
  for (const Index size : sizes) total += size;
  return total;
}

Index pieces(const std::vector<Index>& sizes, int ranks) {
  Index total = 0;
  for (const Index size : sizes) total += up_to_multiple(size, ranks) / ranks;
  return total;
}

Index sent(const RankReport& report, Op op) {
  const auto entry = report.comm.traffic.find(op);
  return entry == report.comm.traffic.end() ? 0 : entry->second.bytes_sent;
}

using Visits = std::vector<std::string>;

Visits visits_of(const Training& training) {
  return observed<Visits>(2, training, [](Visits& visits, const Stamp&, const Event& event) {
    if (const auto* span = std::get_if<SpanEvent>(&event)) {
      visits.push_back(std::string(span->kind) + " " + std::string(span->module));
    }
  })[0];
}

}  // namespace

TEST_CASE("B11: frozen weights of a unit stay as they are and the others learn, in every stage",
          "[cases]") {
  CHECK(wrong_in_any_stage(four_layers()).empty());
  for (const int stage : kStages) {
    INFO("stage " << stage);
    const Training training = training_of_described(four_layers(), stage);
    WeightHistory history;
    run(3, with_history(training, history));
    const std::unique_ptr<Model> model = training.build();
    for (const Parameter& parameter : model->parameters()) {
      INFO(parameter.name());
      const auto id = static_cast<std::size_t>(parameter.id());
      CHECK((history.latest[id] == history.initial[id]) == !parameter.requires_grad());
    }
  }
}

TEST_CASE("B11: a frozen parameter takes the bytes of its weights and no others", "[cases]") {
  for (const int ranks : {1, 2, 3, 4}) {
    const Index trained = up_to_multiple(sum(kTrained), 2 * ranks);
    // parameters, gradients, optimizer
    const std::vector<std::array<Index, 3>> expected{
        {trained + sum(kFrozen), trained, 2 * trained},
        {trained + sum(kFrozen), trained, 2 * trained / ranks},
        {trained + sum(kFrozen), trained / ranks, 2 * trained / ranks},
        {pieces(kTrained, ranks) + pieces(kFrozen, ranks), pieces(kTrained, ranks),
         2 * pieces(kTrained, ranks)},
    };
    for (const int stage : kStages) {
      INFO("stage " << stage << ", " << ranks << " ranks");
      Training training = training_of_described(four_layers(), stage);
      training.settings.optimizer = {};  // AdamW, two moments
      for (const MemoryUse& memory : run(ranks, training)[0].memory) {
        const auto& [parameters, gradients, moments] = expected[static_cast<std::size_t>(stage)];
        CHECK(memory.steady[Category::parameters] == parameters * kBytes);
        CHECK(memory.steady[Category::gradients] == gradients * kBytes);
        CHECK(memory.steady[Category::optimizer] == moments * kBytes);
      }
    }
  }
}

TEST_CASE("a frozen parameter is gathered where it is read, and neither reduced nor published") {
  for (const int ranks : {1, 2, 3, 4}) {
    const auto share = [ranks](Index padded) { return padded * kBytes * (ranks - 1) / ranks; };
    const Index flat = share(up_to_multiple(sum(kTrained), 2 * ranks));
    // Nothing is left out of backward, since the embedding below learns.
    const Index gathered = 2 * share((pieces(kTrained, ranks) + pieces(kFrozen, ranks)) * ranks);
    const Index reduced = share(pieces(kTrained, ranks) * ranks);
    const std::vector<std::array<Index, 3>> expected{
        {2 * flat, 0, 0}, {0, flat, flat}, {0, flat, flat}, {0, reduced, gathered}};
    for (const int stage : kStages) {
      INFO("stage " << stage << ", " << ranks << " ranks");
      Training training = training_of_described(four_layers(), stage);
      training.steps = 1;
      const RankReport report = run(ranks, training)[0];
      const auto& [all_reduce, reduce_scatter, all_gather] =
          expected[static_cast<std::size_t>(stage)];
      CHECK(sent(report, Op::all_reduce) == all_reduce);
      CHECK(sent(report, Op::reduce_scatter) == reduce_scatter);
      CHECK(sent(report, Op::all_gather) == all_gather);
    }
  }
}

TEST_CASE("what lies below everything that learns keeps nothing and makes no backward visit") {
  CHECK(wrong_in_any_stage(frozen_below()).empty());
  Training training = training_of_described(frozen_below(), 3);
  training.steps = 1;
  CHECK(visits_of(training) == Visits{"forward embedding", "forward low", "forward gelu",
                                      "forward middle", "forward head", "forward body",
                                      "forward described", "backward head", "backward middle",
                                      "backward body", "backward described"});

  // Of 2 sequences of 3 tokens, when head runs: tokens and targets, the embedding's output, which
  // the body's caller still has, middle's and head's inputs, and the logits.
  const Index rows = 6;
  const Index peak = run(2, training)[0].memory[0].category_peak[Category::activations];
  CHECK(peak == rows * (1 + 1 + 5 + 3 + 3 + 7) * kBytes);
}

TEST_CASE("whatever else is frozen, what learns has the gradient it would have anyway") {
  // Of the first step, before anything has learned: the same bits as in a model without frozen
  // parameters.
  const auto first_gradients = [](const std::vector<std::string>& frozen) {
    Training training = training_of(tiny_transformer(), 3);
    training.steps = 1;
    training.build = [frozen] {
      std::unique_ptr<Model> model = build_model(tiny_transformer());
      for (const std::string& name : frozen) model->parameters().freeze(name);
      return model;
    };
    WeightHistory history;
    run(2, with_history(training, history));
    return history.gradient;
  };
  const Weights all = first_gradients({});
  const std::unique_ptr<Model> model = build_model(tiny_transformer());
  for (const std::vector<std::string>& frozen : std::vector<std::vector<std::string>>{
           {"token_embedding", "blocks.0"},
           {"position_embedding", "blocks.1", "final_norm"},
           {"token_embedding", "position_embedding", "blocks.0.norm1", "blocks.0.attention"},
           {"token_embedding", "blocks.0.mlp", "blocks.0.norm2", "blocks.1.attention.qkv.weight"},
           {"blocks.0.norm1.weight", "blocks.1.norm2.bias", "final_norm.weight"}}) {
    ParameterSet& parameters = model->parameters();
    const Weights got = first_gradients(frozen);
    for (Parameter& parameter : parameters) {
      const bool is_frozen =
          std::any_of(frozen.begin(), frozen.end(), [&](const std::string& name) {
            return parameter.name() == name || parameter.name().rfind(name + ".", 0) == 0;
          });
      INFO(parameter.name());
      const auto id = static_cast<std::size_t>(parameter.id());
      if (!is_frozen) CHECK(got[id] == all[id]);
    }
  }
}

TEST_CASE("a frozen parameter that persists is gathered once, not after every update") {
  Training training = training_of_described(four_layers(), 3);
  training.settings.zero.param_persistence_threshold = 100;
  training.steps = 4;
  std::map<std::string, int> gathers = observed<std::map<std::string, int>>(
      3, training, [](auto& count, const Stamp&, const Event& event) {
        const auto* param = std::get_if<ParamEvent>(&event);
        if (param != nullptr && param->to == "INFLIGHT") ++count[std::string(param->parameter)];
      })[0];
  CHECK(gathers.at("third.weight") == 1);
  CHECK(gathers.at("second.weight") == 5);  // before the first use, and after each update
}

TEST_CASE("what cannot be frozen is refused by name") {
  ParameterSet parameters;
  parameters.add("blocks.0.norm.weight", {3}, Initial::ones());
  parameters.add("blocks.10.norm.weight", {3}, Initial::ones());
  const auto misspelt = thrown_by([&] { parameters.freeze("bloks.0"); });
  REQUIRE(misspelt);
  CHECK(misspelt->code() == Code::usage);
  CHECK(misspelt->what_happened() ==
        "the model has neither a parameter nor a module 'bloks.0' to freeze; did you mean "
        "blocks.0?");
  CHECK(thrown_by([&] { parameters.freeze("blocks.1"); }));  // half a name
  parameters.freeze("blocks.0");
  CHECK_FALSE(parameters[0].requires_grad());
  CHECK(parameters[1].requires_grad());
  CHECK(parameters.trainable_numel() == 3);

  for (const int stage : kStages) {
    Training late = training_of_described(four_layers(), stage);
    late.prepare = [](Runtime&, Engine& engine) { engine.model().parameters().freeze("second"); };
    const auto too_late = thrown_by([&] { run(2, late); });
    REQUIRE(too_late);
    CHECK(too_late->what_happened() ==
          "'second' cannot be frozen any more: its gradient and moments have their memory already");

    DescribedModel nothing = four_layers();
    nothing.frozen.insert({"embedding.weight", "second.weight", "second.bias"});
    const auto idle = thrown_by([&] { run(2, training_of_described(nothing, stage)); });
    REQUIRE(idle);
    CHECK(idle->what_happened() ==
          "every parameter of the model is frozen: there is nothing to train");
  }
}
