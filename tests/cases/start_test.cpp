// Kind c of docs/cases.md: from which weights the ranks start, and that they stay replicas.

#include <optional>

#include "lab/failures/wrappers/stage_wrapper.hpp"
#include "stages/engine/gathered_parameters.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/run_ranks.hpp"
#include "tests/support/thrown.hpp"
#include "tests/support/trainings.hpp"
#include "tests/support/weight_history.hpp"

using namespace zerolab;
using namespace zerolab::test;

namespace {

/// The whole weights as one rank has them, after set-up and after every step.
using Replicas = std::vector<std::vector<float>>;

/// Copies every parameter that is whole on this rank.
class ReplicaWatch : public StageWrapper {
 public:
  ReplicaWatch(std::unique_ptr<Stage> stage, Runtime& runtime, Replicas& replicas)
      : StageWrapper(std::move(stage), runtime), replicas_(replicas) {}

  void set_up(Model& model) override {
    StageWrapper::set_up(model);
    parameters_ = &model.parameters();
    copy();
  }
  void publish() override {
    StageWrapper::publish();
    copy();
  }

 private:
  void copy() {
    std::vector<float> values;
    for (const Parameter& parameter : *parameters_) {
      if (parameter.status() != Status::available) continue;
      const float* data = parameter.data;
      values.insert(values.end(), data, data + parameter.numel());
    }
    replicas_.push_back(values);
  }

  Replicas& replicas_;
  ParameterSet* parameters_ = nullptr;
};

Replicas replicas_of(Communicator& communicator, const Training& training) {
  Replicas replicas;
  Recorder recorder(communicator.rank());
  train(communicator, recorder, with_stage<ReplicaWatch>(training, std::ref(replicas)));
  return replicas;
}

}  // namespace

TEST_CASE("B49: ranks with different seeds are refused before the first step", "[cases]") {
  for (const int stage : {0, 1, 2, 3}) {
    INFO("stage " << stage);
    std::array<bool, 4> stepped{};
    const auto error = thrown_by([&] {
      run_ranks(4, [&](Communicator& communicator) {
        const int rank = communicator.rank();
        Training training = training_of(tiny_mlp(), stage);
        training.seed = 100 + static_cast<std::uint64_t>(rank);
        training.on_step = [&stepped, rank](Index, const StepResult&, const Ledger&) {
          stepped[static_cast<std::size_t>(rank)] = true;
        };
        Recorder recorder(rank);
        train(communicator, recorder, training);
      });
    });
    REQUIRE(error);
    INFO(error->what());
    CHECK(error->code() == Code::ranks_disagree);
    CHECK(contains(error->what(), "seed: 100 on rank 0, 101 on rank 1"));
    CHECK(stepped == std::array<bool, 4>{});
  }
}

TEST_CASE("B49: initial weights depend neither on the ranks nor on the stage", "[cases]") {
  WeightHistory expected;
  run(1, with_history(training_of(tiny_transformer(), 0), expected));
  for (const int ranks : {1, 2, 3, 4}) {
    for (const int stage : {0, 1, 2, 3}) {
      INFO("stage " << stage << ", " << ranks << " ranks");
      Training training = training_of(tiny_transformer(), stage);
      training.steps = 0;
      WeightHistory history;
      run(ranks, with_history(training, history));
      CHECK(history.initial == expected.initial);
    }
  }
}

TEST_CASE("B49: what several ranks hold whole is equal after set-up and after every step",
          "[cases]") {
  for (const int stage : {0, 1, 2}) {
    INFO("stage " << stage);
    const auto by_rank = run_ranks(4, [&](Communicator& communicator) {
      return replicas_of(communicator, training_of(tiny_mlp(), stage));
    });
    REQUIRE(by_rank[0].size() == 11);
    CHECK(by_rank[0][0].size() ==
          13 * 5 + 15 * 33 + 33 + 33 * 5 + 5 + 5 * 3 + 3 + 3 + 1 + 7 + 7 + 7 * 13 + 13);
    CHECK(by_rank[0][0] != by_rank[0][10]);
    for (const Replicas& replicas : by_rank) CHECK(replicas == by_rank[0]);
  }
}

TEST_CASE("B49: copies that differ are found before they are trained on", "[cases]") {
  const auto write = [](bool in_scope) {
    return [in_scope](Runtime& runtime, Engine& engine) {
      Parameter& parameter = engine.model().parameters().at("layers.0.weight");
      std::optional<GatheredParameters> scope;
      if (in_scope) scope.emplace(runtime, engine.stage(), std::vector<Parameter*>{&parameter}, 0);
      parameter.data[7] += static_cast<float>(runtime.rank());
    };
  };
  for (const int stage : {0, 1, 2, 3}) {
    INFO("stage " << stage);
    Training training = training_of(tiny_mlp(), stage);
    training.settings.zero.enable_sanity_checks = true;
    const auto expected = bits(run(3, training)[0]);
    // through a scope rank 0's value is everybody's, whatever the others wrote
    training.prepare = write(true);
    CHECK(bits(run(3, training)[0]) == expected);
    if (stage == 3) continue;  // nobody has a copy
    training.prepare = write(false);
    const auto error = thrown_by([&] { run(3, training); });
    REQUIRE(error);
    CHECK(error->code() == Code::replicas_differ);
    CHECK(error->what_happened() ==
          "before step 1 copies of parameters differ from rank 0's:\n  'layers.0.weight' on rank "
          "1, 2");
  }
}

TEST_CASE("B49: a copy that goes wrong later is found before the next step", "[cases]") {
  for (const int stage : {0, 1, 2, 3}) {
    INFO("stage " << stage);
    Training training = training_of(tiny_mlp(), stage);
    training.settings.zero.enable_sanity_checks = true;
    training.settings.zero.param_persistence_threshold = 40;  // stage 3 keeps some whole, too
    const auto error = thrown_by([&] {
      run_ranks(4, [&](Communicator& communicator) {
        ParameterSet* of_rank = nullptr;
        Training mine = training;
        mine.prepare = [&of_rank](Runtime&, Engine& engine) {
          of_rank = &engine.model().parameters();
        };
        mine.on_step = [&](Index step, const StepResult&, const Ledger&) {
          if (step == 4 && communicator.rank() == 2) of_rank->at("layers.1.bias").data[0] += 1;
        };
        Recorder recorder(communicator.rank());
        train(communicator, recorder, mine);
      });
    });
    REQUIRE(error);
    CHECK(error->what_happened() ==
          "before step 5 copies of parameters differ from rank 0's:\n  'layers.1.bias' on rank 2");
  }
}
