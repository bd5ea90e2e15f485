// Kind h of docs/cases.md: what is sent, and what of it one has to wait for.

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "tests/config/support.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/observed.hpp"
#include "tests/support/scripted.hpp"
#include "tests/support/thrown.hpp"
#include "tests/support/watching_communicator.hpp"

using namespace zerolab;
using namespace zerolab::test;

namespace {

float by_rank(Index element, const Moment& moment) {
  return static_cast<float>(element % 3 + moment.rank);
}

// --- B102 ----------------------------------------------------------------------------------------

constexpr std::chrono::milliseconds kTick{10};  // of computing a layer, and of reducing one
constexpr int kLayers = 8;
constexpr Index kLayerElements = 1000;

/// A layer whose backward takes a tick.
class Slow : public Scripted {
 public:
  using Scripted::Scripted;

 protected:
  Tensor do_backward(const Tensor& output_gradient) override {
    std::this_thread::sleep_for(kTick);
    return Scripted::do_backward(output_gradient);
  }
};

/// One step of eight layers, so many to a bucket.
Training slow_layers(int stage, bool overlap, Index layers_to_a_bucket) {
  Training training = training_of_chain(
      [](ParameterSet& parameters) {
        Links links{std::make_shared<Blank>()};
        for (int i = 0; i < kLayers; ++i) {
          links.push_back(std::make_shared<Slow>(parameters, std::to_string(i),
                                                 Shape{kLayerElements}, by_rank));
        }
        return links;
      },
      kBlankVocabulary, stage);
  training.steps = 1;
  training.settings.zero.overlap_comm = overlap;
  training.settings.zero.reduce_bucket_size = layers_to_a_bucket * kLayerElements;
  return training;
}

/// Time in which a reduction ran, and of that the time nobody waited for it; microseconds.
struct Hidden {
  double reducing = 0;
  double hidden = 0;
  std::vector<std::string> result;
};

/// Trains over a link on which the reduction of a layer takes a tick.
Hidden hidden_of(const Training& training) {
  return run_ranks(2, [&](Communicator& inner) {
    WatchingCommunicator link(inner, [](const Exchange& round) {
      if (round.signature.op == Op::reduce_scatter) {
        std::this_thread::sleep_for(kTick * (round.signature.elements / kLayerElements));
      }
    });
    Recorder recorder(inner.rank());
    Hidden total;
    recorder.observe([&](const Stamp&, const Event& event) {
      const auto* comm = std::get_if<CommEvent>(&event);
      if (comm == nullptr || !reduces(*comm)) return;
      const double took = comm->finished - comm->started;
      total.reducing += took;
      total.hidden += took - std::clamp(comm->finished - comm->waited, 0.0, took);
    });
    total.result = bits(train(link, recorder, training));
    return total;
  })[0];
}

/// Which share of the reductions is hidden. The best of three if that is not enough: a machine that
/// is busy with other things hides less, never more. `result` has to be the same every time.
double hidden_share(const Training& training, double enough, std::vector<std::string>& result) {
  double best = 0;
  int tries = 0;
  do {
    const Hidden measured = hidden_of(training);
    best = std::max(best, measured.hidden / measured.reducing);
    if (result.empty()) result = measured.result;
    CHECK(measured.result == result);
  } while (best < enough && ++tries < 3);
  return best;
}

// --- B106 ----------------------------------------------------------------------------------------

/// Elements of the gathers and of the reductions of one step on rank 0.
struct Collectives {
  std::vector<Index> gathers, reductions;
};
Collectives collectives_of(Training training) {
  training.steps = 1;
  return observed<Collectives>(2, training, [](Collectives& all, const Stamp&, const Event& event) {
    const auto* comm = std::get_if<CommEvent>(&event);
    if (comm == nullptr) return;
    if (comm->op == name_of(Op::all_gather)) all.gathers.push_back(comm->elements);
    if (reduces(*comm)) all.reductions.push_back(comm->elements);
  })[0];
}

Index sum(const std::vector<Index>& values) {
  Index total = 0;
  for (const Index value : values) total += value;
  return total;
}

}  // namespace

TEST_CASE("B98: stages 2 and 3 pay for every micro-step, stages 0 and 1 once a step", "[cases]") {
  // 32 + 16 + 48 = 96 elements, and no padding on four ranks: the unit is 96 * 3 / 4
  constexpr Index kUnit = 72;
  for (const Index accumulation : {1, 4}) {
    const std::array<Index, 4> units{2, 2, accumulation + 1, 3 * accumulation};
    for (const int stage : {0, 1, 2, 3}) {
      INFO("stage " << stage << ", " << accumulation << " micro-steps");
      Training training = training_of_script({{4, 8}, {16}, {8, 6}}, by_rank, stage);
      training.settings.gradient_accumulation_steps = accumulation;
      for (const RankReport& report : run(4, training)) {
        Index sent = 0;
        for (const auto& [op, traffic] : report.comm.traffic) {
          if (op != Op::control) sent += traffic.bytes_sent;
        }
        CHECK(sent == training.steps * 4 * units[static_cast<std::size_t>(stage)] * kUnit);
      }
    }
  }
}

TEST_CASE("B102: small buckets hide their reduction behind the backward, one for all does not",
          "[cases]") {
  std::vector<std::string> result;
  for (const int stage : {1, 2, 3}) {
    INFO("stage " << stage);
    CHECK(hidden_share(slow_layers(stage, true, 1), 0.7, result) > 0.7);
    CHECK(hidden_share(slow_layers(stage, true, 2), 0.5, result) > 0.5);
    CHECK(hidden_share(slow_layers(stage, true, kLayers), 0, result) < 0.1);
    CHECK(hidden_share(slow_layers(stage, false, 1), 0, result) < 0.1);
  }
}

TEST_CASE("B88: stage 1 heeds overlap_comm: reductions run while the backward goes on", "[cases]") {
  std::vector<std::string> result;
  CHECK(hidden_share(slow_layers(1, true, 1), 0.5, result) > 0.5);
  CHECK(hidden_share(slow_layers(1, false, 1), 0, result) < 0.1);
}

TEST_CASE("B106: a setting without effect says so and why, at every stage", "[cases]") {
  for (const int stage : {0, 1, 2, 3}) {
    INFO("stage " << stage);
    for (const std::string_view knob :
         {"stage3_prefetch_bucket_size", "stage3_param_persistence_threshold",
          "stage3_max_live_parameters", "stage3_max_reuse_distance", "allgather_bucket_size"}) {
      const std::string key = "zero_optimization." + std::string(knob);
      const Effective effective = resolve(config(
          fmt::format(R"({{"zero_optimization": {{"stage": {}, "{}": 1000}}}})", stage, knob)));
      const SettingRow row = row_of(effective, key);
      INFO(key << ": " << row.reason);
      CHECK_FALSE(row.active);
      CHECK_FALSE(row.reason.empty());
      REQUIRE(effective.warnings.size() == 1);
      CHECK(contains(effective.warnings[0], key + " has no effect: " + row.reason));
    }
    CHECK(row_of(resolve(config("{}")), "zero_optimization.reduce_bucket_size").active);
  }
}

TEST_CASE("B106: reduce_bucket_size shapes the reductions of stage 3, not its gathers", "[cases]") {
  std::vector<Collectives> sweep;
  for (const Index bucket : {Index{1}, Index{500}, Index{1} << 40}) {
    Training training = training_of(tiny_transformer(), 3);
    training.settings.zero.reduce_bucket_size = bucket;
    sweep.push_back(collectives_of(training));
  }
  for (const Collectives& all : sweep) {
    CHECK(all.gathers == sweep[0].gathers);
    CHECK(sum(all.reductions) == sum(sweep[0].reductions));
  }
  CHECK(sweep[0].reductions.size() == 28);  // one for each parameter
  CHECK(sweep[1].reductions.size() < 28);
  CHECK(sweep[1].reductions.size() > 1);
  CHECK(sweep[2].reductions.size() == 1);
  // The size of a gather is that of the module: its largest is the first layer of an MLP.
  CHECK(*std::max_element(sweep[0].gathers.begin(), sweep[0].gathers.end()) == 36 * 9 + 36);
}
