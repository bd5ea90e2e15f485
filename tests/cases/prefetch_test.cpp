// Kinds a, b and h of docs/cases.md, where stage 3 gathers ahead of the modules.

#include <algorithm>
#include <set>

#include "stages/zero3/coordinator.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/layers.hpp"
#include "tests/support/live_parameters.hpp"
#include "tests/support/observed.hpp"
#include "tests/support/scripted.hpp"
#include "tests/support/thrown.hpp"
#include "tests/support/weight_history.hpp"

using namespace zerolab;
using namespace zerolab::test;

namespace {

constexpr Index kMuch = Index{1} << 40;

/// What one rank has to tell of a run.
struct Told {
  RankReport report;
  std::vector<std::string> notes;
  std::vector<Index> live_after_step, most_in_step, most_coming_in_step;
};

std::vector<Told> told(int ranks, const Training& training) {
  return run_ranks(ranks, [&](Communicator& communicator) {
    Recorder recorder(communicator.rank());
    LiveParameters live(training.build()->parameters());
    Told all;
    recorder.observe([&](const Stamp&, const Event& event) {
      live.see(event);
      if (const auto* note = std::get_if<NoteEvent>(&event)) all.notes.emplace_back(note->text);
      if (!std::holds_alternative<StepEvent>(event)) return;
      all.live_after_step.push_back(live.live());
      all.most_in_step.push_back(live.most());
      all.most_coming_in_step.push_back(live.most_coming());
      live.forget_most();
    });
    all.report = train(communicator, recorder, training);
    return all;
  });
}

// --- B02, B04, B16 -------------------------------------------------------------------------------

/// Runs some of its layers, by the number of the step.
class Choosing : public Module {
 public:
  using Choice = std::function<std::vector<std::size_t>(Index step)>;

  Choosing(std::string name, std::vector<std::shared_ptr<Module>> layers, Choice choice)
      : Module(std::move(name)), layers_(std::move(layers)), choice_(std::move(choice)) {
    for (const auto& layer : layers_) adopt(*layer);
  }

 protected:
  Tensor do_forward(const Tensor& input) override {
    Tensor x = input;
    for (const std::size_t i : chosen()) x = layers_[i]->forward(x);
    return x;
  }
  Tensor do_backward(const Tensor& output_gradient) override {
    std::vector<std::size_t> order = chosen();
    std::reverse(order.begin(), order.end());
    Tensor dx = output_gradient;
    for (const std::size_t i : order) dx = layers_[i]->backward(dx);
    return dx;
  }

 private:
  std::vector<std::size_t> chosen() { return choice_(context().recorder.step()); }

  std::vector<std::shared_ptr<Module>> layers_;
  Choice choice_;
};

Training choosing(int stage, const Choosing::Choice& choice) {
  Training training = training_of_chain(
      [choice](ParameterSet& parameters) {
        std::vector<std::shared_ptr<Module>> layers;
        for (const char* name : {"layers.0", "layers.1", "layers.2"}) {
          layers.push_back(linear(parameters, name, 8, 8));
        }
        return Links{embedding(parameters, 11, 8),
                     std::make_shared<Choosing>("choosing", std::move(layers), choice),
                     linear(parameters, "head", 8, 11)};
      },
      11, stage);
  training.settings.zero.prefetch_bucket_size = 2 * (64 + 8);
  return training;
}

/// Runs what is inside twice: once to learn, and once more without gradient.
class Twice : public ChainModule {
 public:
  using ChainModule::ChainModule;

 protected:
  Tensor do_forward(const Tensor& input) override {
    Tensor output = ChainModule::do_forward(input);
    if (context().pass == VisitKind::forward) {
      without_gradient([&] { return ChainModule::do_forward(input); });
    }
    return output;
  }
};

// --- B23, B97 ------------------------------------------------------------------------------------

constexpr Index kLayer = 100;

Training equal_layers(std::size_t count, int stage = 3) {
  Training training = training_of_script(
      std::vector<Shape>(count, Shape{kLayer}),
      [](Index element, const Moment& m) { return static_cast<float>(element % 3 + m.rank); },
      stage);
  training.steps = 4;
  return training;
}

/// What a pass would take if a layer computed for one unit of time and its all-gather took one, on
/// a link that does one thing after the other.
double modelled_time(const std::vector<Decision>& decisions) {
  double compute = 0;
  double link = 0;
  std::map<std::vector<Index>, double> arrives;
  for (const Decision& before : decisions) {
    for (const Action& action : before.actions) {
      if (action.kind == Action::Kind::gather) {
        link = std::max(link, compute) + 1;
        arrives[action.parameters] = link;
      } else if (action.kind == Action::Kind::wait) {
        compute = std::max(compute, arrives.at(action.parameters));
      }
    }
    compute += 1;
  }
  return compute;
}

}  // namespace

TEST_CASE("B02: a layer that is skipped in some steps leaves nothing behind", "[cases]") {
  // steps 4 and 6 of the case, counted from 1: without the middle layer, without the last one
  const Choosing::Choice choice = [](Index step) -> std::vector<std::size_t> {
    if (step == 4) return {0, 2};
    if (step == 6) return {0, 1};
    return {0, 1, 2};
  };
  for (const int ranks : {2, 3}) {
    const auto expected = bits(run(ranks, choosing(0, choice))[0]);
    for (const Told& rank : told(ranks, choosing(3, choice))) {
      CHECK(bits(rank.report) == expected);
      CHECK(rank.live_after_step == std::vector<Index>(10, 0));
      REQUIRE(rank.notes.size() == 4);  // away from the order and back, twice
      CHECK(contains(rank.notes[0], "step 4: the order of modules has changed"));
      CHECK(contains(rank.notes[0], "expected 'layers.1' (forward), got 'layers.2' (forward)"));
      CHECK(contains(rank.notes[1], "step 5: "));
      CHECK(contains(rank.notes[2], "step 6: "));
      CHECK(contains(rank.notes[2], "expected 'layers.2' (forward), got 'head' (forward)"));
      CHECK(rank.report.fetches.unused > 0);
      CHECK(rank.report.fetches.hits > 0);
    }
  }
  WeightHistory history;
  Training skipped = choosing(3, [](Index) -> std::vector<std::size_t> { return {0, 2}; });
  run(2, with_history(skipped, history));
  CHECK(history.gradient[2] == std::vector<float>(64, 0));  // layers.1.weight
}

TEST_CASE("B04: branches that change places from step to step are recorded anew", "[cases]") {
  const Choosing::Choice choice = [](Index step) -> std::vector<std::size_t> {
    if (step % 2 == 0) return {0, 1};
    return {1, 0};
  };
  const auto expected = bits(run(2, choosing(0, choice))[0]);
  for (const Told& rank : told(2, choosing(3, choice))) {
    CHECK(bits(rank.report) == expected);
    CHECK(rank.notes.size() == 9);
    CHECK(contains(rank.notes[0], "expected 'layers.1' (forward), got 'layers.0' (forward)"));
    for (const StepResult& step : rank.report.steps) CHECK(step.fetches.misses > 0);
    CHECK(rank.report.fetches.hits > 0);
  }
}

TEST_CASE("B16: an extra forward without gradient inside a step keeps every count right",
          "[cases]") {
  const auto twice = [](int stage) {
    Training training = training_of_chain(
        [](ParameterSet& parameters) {
          return Links{
              embedding(parameters, 11, 8),
              std::make_shared<Twice>("twice", Links{linear(parameters, "layers.0", 8, 8),
                                                     linear(parameters, "layers.1", 8, 8)}),
              linear(parameters, "head", 8, 11)};
        },
        11, stage);
    training.steps = 20;
    training.settings.zero.prefetch_bucket_size = 1000;
    training.settings.zero.param_persistence_threshold = 8;  // two biases of 8
    training.settings.zero.max_live_parameters = 180;
    return training;
  };
  const auto expected = bits(run(2, twice(0))[0]);
  for (const Told& rank : told(2, twice(3))) {
    CHECK(bits(rank.report) == expected);
    CHECK(rank.notes.empty());
    CHECK(rank.live_after_step == std::vector<Index>(20, 16));
    for (std::size_t step = 1; step < 20; ++step) {
      CHECK(rank.most_in_step[step] == rank.most_in_step[1]);
      CHECK(rank.report.steps[step].fetches == rank.report.steps[1].fetches);
    }
    CHECK(rank.most_in_step[1] <= 180);
  }
}

TEST_CASE("B23: prefetch holds to the bucket and to the limit of live parameters", "[cases]") {
  struct Sweep {
    Index bucket, live, most;
  };
  const auto expected = bits(run(4, equal_layers(12, 0))[0]);
  for (const Sweep& sweep : {Sweep{0, kMuch, 1}, Sweep{2 * kLayer, kMuch, 3},
                             Sweep{100 * kLayer, kMuch, 12}, Sweep{100 * kLayer, 3 * kLayer, 3}}) {
    Training training = equal_layers(12);
    training.settings.zero.prefetch_bucket_size = sweep.bucket;
    training.settings.zero.max_live_parameters = sweep.live;
    for (const Told& rank : told(4, training)) {
      INFO("bucket " << sweep.bucket << ", max_live " << sweep.live);
      CHECK(bits(rank.report) == expected);
      const Index most = *std::max_element(rank.most_in_step.begin(), rank.most_in_step.end());
      CHECK(most <= std::min(sweep.live, kLayer + sweep.bucket));
      CHECK(most == sweep.most * kLayer);
      for (const Index coming : rank.most_coming_in_step) {
        CHECK(coming <= kLayer * static_cast<Index>(Coordinator::kMostInFlight));
      }
    }
  }
}

TEST_CASE("B97: prefetch hits from the second step on, and gathering is hidden behind compute",
          "[cases]") {
  constexpr Index kLayers = 6;
  for (const int ranks : {2, 3}) {
    Training training = equal_layers(kLayers);
    training.settings.zero.prefetch_bucket_size = kLayer;
    const auto steps = run(ranks, training)[0].steps;
    CHECK(steps[0].fetches == FetchCounts{0, 2 * kLayers, 0});
    // The first layer's gather begins with the root, before it; the last one stays for backward.
    for (std::size_t i = 1; i < steps.size(); ++i) {
      CHECK(steps[i].fetches == FetchCounts{2 * kLayers - 1, 0, 0});
    }
  }
  for (const Index bucket : {Index{0}, kLayer}) {
    Coordinator coordinator(std::vector<Index>(kLayers, kLayer), std::vector<bool>(kLayers),
                            {bucket, kMuch, 0});
    std::vector<Decision> decisions;
    for (int pass = 0; pass < 3; ++pass) {
      decisions.clear();
      for (Index layer = 0; layer < kLayers; ++layer) {
        const Stop stop{layer, VisitKind::evaluate, {layer}};
        decisions.push_back(coordinator.before(stop));
        coordinator.after(stop);
      }
      coordinator.end_pass(true);
    }
    CHECK(modelled_time(decisions) == (bucket == 0 ? 12 : 7));
  }
}
