// Kind h of docs/cases.md: what is sent, and what of it one has to wait for.

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>

#include "tests/config/support.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/observed.hpp"
#include "tests/support/run_ranks.hpp"
#include "tests/support/scripted.hpp"
#include "tests/support/thrown.hpp"
#include "tests/support/watching_communicator.hpp"
#include "tests/support/weight_history.hpp"

using namespace zerolab;
using namespace zerolab::test;

namespace {

float by_rank(Index element, const Moment& moment) {
  return static_cast<float>(element % 3 + moment.rank);
}

// --- B102 ----------------------------------------------------------------------------------------

constexpr int kLayers = 8;
constexpr Index kLayerElements = 1000;

/// What the two threads of a rank tell each other: how many layers have begun their backward, and
/// how many reductions were under way while a layer behind theirs began.
class Progress {
 public:
  explicit Progress(int layers_to_a_bucket) : layers_to_a_bucket_(layers_to_a_bucket) {}

  void layer_begins(Index step) {
    if (step == 1) return;  // in which stage 3 cannot prefetch yet
    const std::lock_guard lock(mutex_);
    ++begun_;
    changed_.notify_all();
  }

  /// A reduction begins, and does not go on before the next layer has begun; at most so long.
  void reduce(std::chrono::milliseconds limit) {
    std::unique_lock lock(mutex_);
    if (begun_ == 0) return;  // step 1
    const int covered = ++reductions_ * layers_to_a_bucket_;
    if (covered == kLayers) return;  // there is no next layer
    if (changed_.wait_for(lock, limit, [&] { return begun_ > covered; })) ++hidden_;
  }

  double hidden_share() const { return static_cast<double>(hidden_) / reductions_; }

 private:
  int layers_to_a_bucket_;
  std::mutex mutex_;
  std::condition_variable changed_;
  int begun_ = 0;
  int reductions_ = 0;
  int hidden_ = 0;
};
using ProgressOfRanks = std::array<Progress, 2>;

/// A layer that says when its backward begins.
class Telling : public Scripted {
 public:
  Telling(ParameterSet& parameters, std::string name, ProgressOfRanks& progress)
      : Scripted(parameters, std::move(name), {kLayerElements}, by_rank), progress_(progress) {}

 protected:
  Tensor do_backward(const Tensor& output_gradient) override {
    const Recorder& recorder = context().recorder;
    progress_[static_cast<std::size_t>(recorder.rank())].layer_begins(recorder.step());
    return Scripted::do_backward(output_gradient);
  }

 private:
  ProgressOfRanks& progress_;
};

/// Two steps of eight layers, so many to a bucket.
Training telling_layers(int stage, bool overlap, int layers_to_a_bucket, bool prefetch,
                        ProgressOfRanks& progress) {
  Training training = training_of_chain(
      [&progress](ParameterSet& parameters) {
        Links links{std::make_shared<Blank>()};
        for (int i = 0; i < kLayers; ++i) {
          links.push_back(std::make_shared<Telling>(parameters, std::to_string(i), progress));
        }
        return links;
      },
      kBlankVocabulary, stage);
  training.steps = 2;
  training.settings.zero.overlap_comm = overlap;
  training.settings.zero.prefetch_bucket_size = prefetch ? kLayerElements : 0;
  training.settings.zero.reduce_bucket_size = layers_to_a_bucket * kLayerElements;
  return training;
}

/// Which share of the reductions runs beside the backward of later layers, on rank 0. The link
/// holds each reduction up until that backward has begun: where it never does, that need not be
/// waited for long. `result` has to be the same every time.
double hidden_share(int stage, bool overlap, int layers_to_a_bucket,
                    std::vector<std::string>& result, bool prefetch = true) {
  const std::chrono::milliseconds limit{overlap && prefetch ? 10'000 : 20};
  ProgressOfRanks progress{Progress(layers_to_a_bucket), Progress(layers_to_a_bucket)};
  const Training training = telling_layers(stage, overlap, layers_to_a_bucket, prefetch, progress);
  const auto reports = run_ranks(2, [&](Communicator& inner) {
    WatchingCommunicator link(inner, [&](const Exchange& exchange) {
      if (exchange.signature.op != Op::reduce_scatter || exchange.round > 0) return;
      progress[static_cast<std::size_t>(inner.rank())].reduce(limit);
    });
    Recorder recorder(inner.rank());
    return train(link, recorder, training);
  });
  if (result.empty()) result = bits(reports[0]);
  CHECK(bits(reports[0]) == result);
  return progress[0].hidden_share();
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
    CHECK(hidden_share(stage, true, 1, result) == 7.0 / 8);
    CHECK(hidden_share(stage, true, 2, result) == 3.0 / 4);
    CHECK(hidden_share(stage, true, kLayers, result) == 0);
    CHECK(hidden_share(stage, false, 1, result) == 0);
  }
  // Without prefetch the next layer cannot begin before its weights are gathered, and that queues
  // behind the reduction.
  CHECK(hidden_share(3, true, 1, result, false) == 0);
}

TEST_CASE("B88: stage 1 heeds overlap_comm: reductions run while the backward goes on", "[cases]") {
  std::vector<std::string> result;
  CHECK(hidden_share(1, true, 1, result) == 7.0 / 8);
  CHECK(hidden_share(1, false, 1, result) == 0);
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
      CHECK(row.active == (stage == 3 && knob != "allgather_bucket_size"));
      if (row.active) continue;
      CHECK_FALSE(row.reason.empty());
      REQUIRE(effective.warnings.size() == 1);
      CHECK(contains(effective.warnings[0], key + " has no effect: " + row.reason));
    }
    CHECK(row_of(resolve(config("{}")), "zero_optimization.reduce_bucket_size").active);
  }
}

TEST_CASE("B99: stage 1 sends what the paper says, half as much again by all-reduce", "[cases]") {
  for (const int ranks : {2, 3, 4}) {
    for (const bool scatter : {true, false}) {
      Training training = training_of_script({{12}, {36}, {24}}, by_rank, 1);
      training.settings.zero.reduce_scatter = scatter;
      training.steps = 1;
      const RankReport report = run(ranks, training)[0];
      Index sent = 0;
      for (const auto& [op, traffic] : report.comm.traffic) {
        if (op != Op::control) sent += traffic.bytes_sent;
      }
      // twice Psi (N - 1) / N, 72 elements of 4 bytes
      const Index paper = 2 * 72 * 4 * (ranks - 1) / ranks;
      CHECK(sent == (scatter ? paper : paper * 3 / 2));
      CHECK(report.comm.traffic.count(Op::all_reduce) == (scatter ? 0 : 1));
    }
  }
}

TEST_CASE("B101: the order of weights and their owners does not cut a bucket up", "[cases]") {
  // 100 weights of 1000 elements; in the other order neighbours belong to different ranks
  const auto weights = [](bool interleaved) {
    return training_of_chain(
        [interleaved](ParameterSet& parameters) {
          Links links{std::make_shared<Blank>()};
          for (int i = 0; i < 100; ++i) {
            const int weight = interleaved ? i * 37 % 100 : i;
            const Script script = [weight](Index element, const Moment& moment) {
              return static_cast<float>(weight + element % 7 + moment.rank);
            };
            links.push_back(std::make_shared<Scripted>(parameters, std::to_string(weight),
                                                       Shape{1000}, script));
          }
          return links;
        },
        kBlankVocabulary, 2);
  };
  std::array<Weights, 2> means;
  for (const bool interleaved : {false, true}) {
    Training training = weights(interleaved);
    training.settings.gradient_clipping = 0;
    training.settings.zero.reduce_bucket_size = 100'000;
    training.steps = 1;
    CHECK(reductions(8, training) == std::vector<Index>{100'000});
    WeightHistory history;
    run(8, with_history(training, history));
    Weights& mean = means[interleaved ? 1 : 0];
    mean.resize(100);
    for (std::size_t i = 0; i < 100; ++i) {
      mean[interleaved ? i * 37 % 100 : i] = history.gradient[i];
    }
  }
  CHECK(means[0] == means[1]);
}

TEST_CASE("B103: updated weights are gathered inside the step, before the next forward begins",
          "[cases]") {
  struct Seen {
    Index gathers = 0;
    double arrived = 0;
    bool in_publish = true, before_forward = true;
  };
  for (const int stage : {1, 2}) {
    Training training = training_of(tiny_mlp(), stage);
    training.settings.zero.overlap_comm = true;
    for (const Seen& seen :
         observed<Seen>(4, training, [](Seen&all, const Stamp&stamp, const Event&event) {
           if (const auto* comm = std::get_if<CommEvent>(&event)) {
             if (comm->op != name_of(Op::all_gather)) return;
             ++all.gathers;
             all.arrived = comm->finished;
             all.in_publish = all.in_publish && stamp.phase == Phase::publish;
           } else if (const auto* span = std::get_if<SpanEvent>(&event)) {
             all.before_forward = all.before_forward && span->start >= all.arrived;
           }
         })) {
      CHECK(seen.gathers == training.steps);
      CHECK(seen.in_publish);
      CHECK(seen.before_forward);
    }
  }
}

TEST_CASE("B106: each setting of stage 3 shapes its gathers in its own way", "[cases]") {
  struct Gathers {
    Index calls = 0, elements = 0, peak = 0, hits = 0;
  };
  // what a run with one setting changed does from its second step on
  const auto gathers = [](Index ZeroSettings::*setting, Index value) {
    Training training = training_of(tiny_transformer(), 3);
    training.settings.zero.prefetch_bucket_size = 400;
    training.settings.zero.*setting = value;
    training.steps = 3;
    const RankReport report = run(2, training)[0];
    const Traffic& traffic = report.comm.traffic.at(Op::all_gather);
    return Gathers{traffic.calls, traffic.elements,
                   report.memory[0].category_peak[Category::gather_buffers], report.fetches.hits};
  };
  const auto sweep = [&](Index ZeroSettings::*setting, std::array<Index, 3> values) {
    std::vector<Gathers> all;
    for (const Index value : values) all.push_back(gathers(setting, value));
    return all;
  };
  const auto prefetch = sweep(&ZeroSettings::prefetch_bucket_size, {0, 400, 2000});
  CHECK(prefetch[0].hits == 0);
  CHECK(prefetch[0].hits < prefetch[1].hits);
  CHECK(prefetch[1].elements > prefetch[2].elements);  // what would come back at once stays
  CHECK(prefetch[0].peak < prefetch[1].peak);
  CHECK(prefetch[1].peak < prefetch[2].peak);

  const auto persistence = sweep(&ZeroSettings::param_persistence_threshold, {0, 36, 400});
  CHECK(persistence[0].elements > persistence[1].elements);
  CHECK(persistence[1].elements > persistence[2].elements);
  CHECK(persistence[1].peak < persistence[2].peak);

  const auto live = sweep(&ZeroSettings::max_live_parameters, {0, 400, 10'000});
  CHECK(live[0].hits == 0);
  CHECK(live[0].hits < live[1].hits);
  CHECK(live[0].peak < live[1].peak);
  CHECK(live[1].peak < live[2].peak);

  const auto reuse = sweep(&ZeroSettings::max_reuse_distance, {0, 1500, 10'000});
  CHECK(reuse[0].elements > reuse[1].elements);
  CHECK(reuse[1].elements > reuse[2].elements);
  CHECK(reuse[0].peak < reuse[1].peak);
  CHECK(reuse[1].peak < reuse[2].peak);
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
