// Kind b of docs/cases.md: what a stage holds, when, and for what.

#include <algorithm>
#include <map>
#include <stdexcept>

#include "lab/failures/wrappers/stage_wrapper.hpp"
#include "stages/device/cpu/cpu_device.hpp"
#include "stages/stages.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/layers.hpp"
#include "tests/support/observed.hpp"
#include "tests/support/scripted.hpp"
#include "tests/support/thrown.hpp"

using namespace zerolab;
using namespace zerolab::test;

namespace {

// --- B18 -----------------------------------------------------------------------------------------

constexpr Index kMillion = 1'000'000;
constexpr Index kDeepSpeedDefault = 500'000'000;
constexpr Index kSmall = 10'000;

/// A million parameters in a hundred weights, on four ranks: 25 whole weights in each slice.
Training million(int stage, Index bucket, bool overlap) {
  Training training = training_of_script(
      std::vector<Shape>(100, Shape{100, 100}),
      [](Index element, const Moment& moment) {
        return static_cast<float>(element % 7 + moment.rank);
      },
      stage);
  training.settings.optimizer.type = OptimizerSettings::Type::adam;
  training.settings.zero.reduce_bucket_size = bucket;
  training.settings.zero.overlap_comm = overlap;
  training.steps = 1;
  return training;
}

/// The phase of the allocation with which a rank came to its peak.
struct Peak {
  Index bytes = 0;
  Phase phase = Phase::set_up;
};
void look_for_peak(Peak& peak, const Stamp& stamp, const Event& event) {
  const auto* taken = std::get_if<AllocEvent>(&event);
  if (taken != nullptr && taken->live > peak.bytes) peak = {taken->live, stamp.phase};
}

// --- B20, B22 ------------------------------------------------------------------------------------

/// Six layers of 1 MiB: 512 x 512 elements each.
Training six_layers(int stage) {
  Training training = training_of_script(
      std::vector<Shape>(6, Shape{512, 512}),
      [](Index element, const Moment& moment) {
        return static_cast<float>(element % 5 - moment.rank);
      },
      stage);
  training.steps = 2;
  return training;
}

/// Forgets to let one module's weights go.
class Forgetful : public StageWrapper {
 public:
  using StageWrapper::StageWrapper;
  void release(const Visit& visit) override {
    if (visit.module.name() != "3") StageWrapper::release(visit);
  }
};

// --- B21 -----------------------------------------------------------------------------------------

struct Interrupted : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// A layer whose second step ends by an exception while it runs, on all ranks alike.
class Interrupting : public Linear {
 public:
  Interrupting(ParameterSet& parameters, VisitKind when)
      : Linear(parameters, "interrupting", 8, 8, Initial::normal(0.5)), when_(when) {}

 protected:
  Tensor do_forward(const Tensor& input) override {
    interrupt(VisitKind::forward);
    return Linear::do_forward(input);
  }
  Tensor do_backward(const Tensor& output_gradient) override {
    interrupt(VisitKind::backward);
    return Linear::do_backward(output_gradient);
  }

 private:
  void interrupt(VisitKind now) const {
    if (now == when_ && context().recorder.step() == 2) throw Interrupted("that was enough");
  }

  VisitKind when_;
};

/// What a rank still has of its weights when the training loop has ended.
struct Remains {
  Index steps = 0;
  Index gathered = 0;  // bytes
  bool all_let_go = true;

  bool operator==(const Remains&) const = default;
};

/// Three steps, or as many as the model lets it make. The states are asked for while the engine is
/// still there.
Remains remains_of(Communicator& communicator, const Training& training) {
  Recorder recorder(communicator.rank());
  Ledger ledger("device", recorder, training.device_memory);
  CpuDevice device(ledger);
  CommStream comm(communicator, device, ledger, recorder);
  Runtime runtime{device, ledger, recorder, comm, training.settings, training.seed};
  const std::unique_ptr<Model> model = training.build();
  Engine engine(runtime, *model, make_stage(runtime), training.sequence_length);
  try {
    for (int step = 1; step <= 3; ++step) engine.step(training.batches);
  } catch (const Interrupted&) {
  } catch (const OutOfMemory&) {
  }
  Remains remains{engine.steps_done(), ledger.live()[Category::gather_buffers]};
  for (const Parameter& parameter : model->parameters()) {
    if (parameter.status() != Status::not_available || parameter.active() != 0) {
      remains.all_let_go = false;
    }
  }
  return remains;
}

Training interrupted(VisitKind when) {
  return training_of_chain(
      [when](ParameterSet& parameters) {
        return Links{embedding(parameters, 11, 8), std::make_shared<Interrupting>(parameters, when),
                     linear(parameters, "head", 8, 11)};
      },
      11, 3);
}

}  // namespace

TEST_CASE("B18: buckets are as large as what they can hold, and counted by themselves", "[cases]") {
  struct Expected {
    int stage;
    Index bucket;
    bool overlap;
    Index reduce_bytes;
  };
  // A rank receives its quarter from three peers; for a small bucket that it owns, in four rounds
  // of a third each, 3333 elements from each peer. Stage 2 also holds the bucket's whole gradients,
  // and with overlap those of the next one.
  constexpr Index kReceivedAll = 3 * (kMillion / 4) * 4;
  constexpr Index kReceivedSmall = 3 * (kSmall / 3) * 4;
  std::vector<Expected> table;
  for (const bool overlap : {false, true}) {
    for (const Index bucket : {kDeepSpeedDefault, kMillion}) {
      table.push_back({1, bucket, overlap, kReceivedAll});
      table.push_back({2, bucket, overlap, kMillion * 4 + kReceivedAll});
    }
    table.push_back({1, kSmall, overlap, kReceivedSmall});
    table.push_back({2, kSmall, overlap, (overlap ? 2 : 1) * kSmall * 4 + kReceivedSmall});
  }
  std::map<std::pair<int, Index>, Index> total;  // by stage and bucket
  for (const Expected& expected : table) {
    INFO("stage " << expected.stage << ", bucket " << expected.bucket
                  << (expected.overlap ? ", overlap" : ""));
    const Training training = million(expected.stage, expected.bucket, expected.overlap);
    const RankReport report = run(4, training)[0];
    for (const MemoryUse& memory : report.memory) {
      CHECK(memory.peak[Category::parameters] == 4 * kMillion);
      CHECK(memory.peak[Category::gradients] == (expected.stage == 1 ? 4 : 1) * kMillion);
      CHECK(memory.peak[Category::optimizer] == 2 * kMillion);
      CHECK(memory.category_peak[Category::reduce_buffers] == expected.reduce_bytes);
    }
    total[{expected.stage, expected.bucket}] = report.memory[0].peak.total();
  }
  for (const int stage : {1, 2}) {
    for (const Peak& peak : observed<Peak>(4, million(stage, kMillion, true), look_for_peak)) {
      CHECK(peak.phase == Phase::backward);
    }
  }
  // With a bucket for everything stage 2 needs more than stage 1, with small ones much less.
  CHECK(total[{2, kDeepSpeedDefault}] > total[{1, kDeepSpeedDefault}]);
  CHECK(total[{2, kSmall}] < total[{1, kSmall}] - 2 * kMillion);
}

TEST_CASE("B20: a rank of stage 3 never holds more than its pieces while it is set up", "[cases]") {
  // five weights of 5, 7, 33, 1 and 0 elements on four ranks: pieces of 2, 2, 9, 1 and 0
  Training training = training_of_script(
      {{5}, {7}, {33}, {1}, {0, 8}},
      [](Index, const Moment& moment) { return static_cast<float>(moment.rank); }, 3);
  training.settings.optimizer.type = OptimizerSettings::Type::adam;
  training.steps = 0;
  struct SetUp {
    Index most = 0;
    Index parameters = 0;
  };
  const auto ranks =
      observed<SetUp>(4, training, [](SetUp& seen, const Stamp&, const Event& event) {
        const auto* taken = std::get_if<AllocEvent>(&event);
        if (taken == nullptr) return;
        seen.most = std::max(seen.most, taken->live);
        if (taken->category == name_of(Category::parameters)) seen.parameters += taken->bytes;
      });
  for (const SetUp& seen : ranks) {
    CHECK(seen.parameters == (2 + 2 + 9 + 1) * 4);
    CHECK(seen.most == 4 * (2 + 2 + 9 + 1) * 4);  // parameters, gradients and two moments
  }
}

TEST_CASE("B21: after the loop, or an exception in it, stage 3 holds no gathered weight",
          "[cases]") {
  const Training undisturbed = interrupted(VisitKind::evaluate);
  for (const Remains& remains : run_ranks(
           2, [&](Communicator& communicator) { return remains_of(communicator, undisturbed); })) {
    CHECK(remains == Remains{.steps = 3});
  }
  for (const VisitKind when : {VisitKind::forward, VisitKind::backward}) {
    for (const Index bucket : {Index{0}, Index{1000}}) {  // what was prefetched goes as well
      INFO("interrupted in " << name_of(when) << ", prefetch bucket " << bucket);
      Training training = interrupted(when);
      training.settings.zero.prefetch_bucket_size = bucket;
      for (const Remains& remains : run_ranks(
               2, [&](Communicator& communicator) { return remains_of(communicator, training); })) {
        CHECK(remains == Remains{.steps = 1});
      }
    }
  }
}

TEST_CASE("B21: memory that runs out between two gathers leaves none of them behind", "[cases]") {
  // The second step prefetches three layers, for which there is too little.
  Training training = training_of_script(
      std::vector<Shape>(6, Shape{1000}),
      [](Index, const Moment& moment) { return static_cast<float>(moment.rank); }, 3);
  training.steps = 1;
  const Index need = run(2, training)[0].memory[0].peak.total();
  training.settings.zero.prefetch_bucket_size = 3000;
  training.steps = 2;
  REQUIRE(run(2, training)[0].memory[0].peak.total() > need);
  training.device_memory = need;
  for (const Remains& remains : run_ranks(
           2, [&](Communicator& communicator) { return remains_of(communicator, training); })) {
    CHECK(remains == Remains{.steps = 1});
  }
}

TEST_CASE("B22: stage 3 holds one layer at a time, gathered once in forward and once in backward",
          "[cases]") {
  constexpr Index kLayer = Index{1} << 20;
  struct Gathers {
    Index most = 0;
    int count = 0;
  };
  const auto ranks =
      observed<Gathers>(4, six_layers(3), [](Gathers& seen, const Stamp&, const Event& event) {
        const auto* taken = std::get_if<AllocEvent>(&event);
        if (taken != nullptr && taken->category == name_of(Category::gather_buffers)) {
          seen.most = std::max(seen.most, taken->bytes);
        }
        const auto* comm = std::get_if<CommEvent>(&event);
        if (comm != nullptr && comm->op == name_of(Op::all_gather)) ++seen.count;
      });
  for (const Gathers& seen : ranks) {
    CHECK(seen.most == kLayer);
    CHECK(seen.count == 2 * 2 * 6);
  }
  const RankReport report = run(4, six_layers(3))[0];
  for (const MemoryUse& memory : report.memory) {
    CHECK(memory.category_peak[Category::gather_buffers] == kLayer);
  }

  const Training leaking = with_stage<Forgetful>(six_layers(3));
  const auto error = thrown_by([&] { run(4, leaking); });
  REQUIRE(error);
  CHECK(error->code() == Code::left_gathered);
  CHECK(contains(error->what(), "parameter '3.weight'"));
}
