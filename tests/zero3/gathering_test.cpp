// How much stage 3 gathers, when, and how much it holds meanwhile: against numbers worked out here.

#include <algorithm>
#include <map>

#include "stages/zero3/persistence.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/live_parameters.hpp"
#include "tests/support/observed.hpp"
#include "tests/support/scripted.hpp"

namespace zerolab::test {
namespace {

constexpr Index kLayer = 60;  // elements; 1, 2, 3 and 4 ranks divide it
constexpr Index kMuch = Index{1} << 40;

Training layers(std::size_t count) {
  Training training = training_of_script(
      std::vector<Shape>(count, Shape{kLayer}),
      [](Index element, const Moment& m) { return static_cast<float>(element % 3 + m.rank); }, 3);
  training.steps = 4;
  return training;
}

/// Gathers of every parameter in each step.
using Gathers = std::map<std::string, std::vector<int>, std::less<>>;
std::vector<Gathers> gathers(int ranks, const Training& training) {
  return observed<Gathers>(ranks, training,
                           [](Gathers& all, const Stamp& stamp, const Event& event) {
                             const auto* param = std::get_if<ParamEvent>(&event);
                             if (param == nullptr || param->to != "INFLIGHT") return;
                             auto& of_parameter = all[std::string(param->parameter)];
                             of_parameter.resize(static_cast<std::size_t>(stamp.step) + 1);
                             ++of_parameter.back();
                           });
}

TEST_CASE("without prefetch, reuse and persistence a parameter of k users is gathered 2k times",
          "[zero3]") {
  for (const int ranks : {1, 2, 3, 4}) {
    Training training = training_of(tiny_transformer(), 3);
    training.steps = 3;
    for (const Gathers& of_rank : gathers(ranks, training)) {
      CHECK(of_rank.size() == 28);
      for (const auto& [name, in_step] : of_rank) {
        const int users = name == "token_embedding.weight" ? 2 : 1;
        CHECK(in_step == std::vector<int>{0, 2 * users, 2 * users, 2 * users});
      }
    }
    // the largest module: 324 weights and 36 biases
    const Index most = run(ranks, training)[0].memory[0].category_peak[Category::gather_buffers];
    CHECK(most == 4 * (PieceLayout{324, ranks}.padded() + PieceLayout{36, ranks}.padded()));
  }
}

TEST_CASE("with prefetch no more is whole than max_live allows, or the largest module", "[zero3]") {
  const auto model = training_of(tiny_transformer(), 3);
  constexpr Index kLargestModule = 324 + 36;
  for (const int ranks : {2, 3}) {
    for (const Index bucket : {Index{100}, Index{400}, kMuch}) {
      for (const Index max_live : {Index{200}, Index{500}, Index{900}, kMuch}) {
        Training training = model;
        training.steps = 3;
        training.settings.zero.prefetch_bucket_size = bucket;
        training.settings.zero.max_live_parameters = max_live;
        const auto most = run_ranks(ranks, [&](Communicator& communicator) {
          Recorder recorder(communicator.rank());
          LiveParameters live(training.build()->parameters());
          recorder.observe([&](const Stamp&, const Event& event) { live.see(event); });
          train(communicator, recorder, training);
          return live.most();
        });
        for (const Index each : most) {
          CHECK(each <= std::max(max_live, kLargestModule));
          CHECK(each <= kLargestModule + bucket);
        }
      }
    }
  }
}

TEST_CASE("a larger reuse distance gathers less and holds more, by as much as is predicted",
          "[zero3]") {
  constexpr int kLayers = 6;
  // Between a layer's forward and its backward everything behind it is read twice.
  for (const int kept : {0, 1, 2, 4, 6}) {
    Training training = layers(kLayers);
    training.settings.zero.max_reuse_distance = kept == 0 ? 0 : 2 * (kept - 1) * kLayer + 1;
    for (const int ranks : {2, 3, 4}) {
      INFO(ranks << " ranks, " << kept << " layers stay");
      for (const Gathers& of_rank : gathers(ranks, training)) {
        for (int layer = 0; layer < kLayers; ++layer) {
          const int again = layer >= kLayers - kept ? 1 : 2;
          CHECK(of_rank.at(std::to_string(layer) + ".weight") ==
                std::vector<int>{0, 2, again, again, again});
        }
      }
      const Index most = run(ranks, training)[0].memory[0].category_peak[Category::gather_buffers];
      CHECK(most == std::max(kept, 1) * kLayer * 4);
    }
  }
}

/// When a layer's gather was issued and waited for, and when layers ran; rank 0, one step.
struct Timeline {
  struct Run {
    double start = 0, end = 0;
  };
  std::map<std::string, CommEvent, std::less<>> gathers;  // of the forward
  std::map<std::string, Run, std::less<>> runs;
};
Timeline forward_of_step_3(const Training& training) {
  return observed<Timeline>(3, training,
                            [](Timeline& seen, const Stamp& stamp, const Event& event) {
                              if (stamp.step != 3 || stamp.phase != Phase::forward) return;
                              if (const auto* comm = std::get_if<CommEvent>(&event)) {
                                seen.gathers[std::string(comm->owner)] = *comm;
                              } else if (const auto* span = std::get_if<SpanEvent>(&event)) {
                                seen.runs[std::string(span->module)] = {span->start, span->end};
                              }
                            })[0];
}

TEST_CASE(
    "with overlap the next layer's gather is issued before a layer ends, and waited for "
    "after it",
    "[zero3]") {
  struct Expected {
    Index bucket;
    bool overlap, issued_before, waited_before;
  };
  for (const Expected& expected :
       {Expected{kLayer, true, true, false}, Expected{kLayer, false, true, true},
        Expected{0, true, false, false}, Expected{0, false, false, false}}) {
    INFO("bucket " << expected.bucket << (expected.overlap ? ", overlap" : ""));
    Training training = layers(5);
    training.settings.zero.prefetch_bucket_size = expected.bucket;
    training.settings.zero.overlap_comm = expected.overlap;
    const Timeline seen = forward_of_step_3(training);
    for (int layer = 1; layer < 4; ++layer) {
      const double end = seen.runs.at(std::to_string(layer)).end;
      const CommEvent& next = seen.gathers.at(std::to_string(layer + 1) + ".weight");
      CHECK((next.issued < end) == expected.issued_before);
      CHECK((next.waited < end) == expected.waited_before);
    }
  }
}

TEST_CASE("what persists is chosen in the order of the model, up to both thresholds", "[zero3]") {
  ZeroSettings settings;
  settings.stage = 3;
  settings.param_persistence_threshold = 5;
  const std::vector<Index> sizes{5, 6, 3, 0, 4};
  CHECK(persistent_parameters(sizes, settings) == std::vector<bool>{true, false, true, true, true});
  settings.model_persistence_threshold = 9;
  CHECK(persistent_parameters(sizes, settings) ==
        std::vector<bool>{true, false, true, true, false});
  settings.param_persistence_threshold = 0;
  CHECK(persistent_parameters(sizes, settings) == std::vector<bool>(5));
}

TEST_CASE("settings with which nothing is ever released are told, with the key", "[zero3]") {
  const std::vector<Index> sizes{50, 60};
  ZeroSettings settings;  // DeepSpeed's defaults
  settings.stage = 3;
  CHECK(why_nothing_is_released(sizes, settings) ==
        "nothing will ever be released: no parameter has more than 60 elements, and all that have "
        "at most 100000 stay whole (zero_optimization.stage3_param_persistence_threshold)");
  settings.param_persistence_threshold = 55;
  CHECK(why_nothing_is_released(sizes, settings) ==
        "nothing will ever be released inside a pass: the whole model is 110 elements, and what is "
        "read again within 1000000000 stays (zero_optimization.stage3_max_reuse_distance)");
  settings.max_reuse_distance = 219;
  CHECK(why_nothing_is_released(sizes, settings).empty());
  settings = {};
  settings.stage = 2;
  CHECK(why_nothing_is_released(sizes, settings).empty());
}

}  // namespace
}  // namespace zerolab::test
