// What DeepSpeed's tests hold of ZeRO's gradients, in terms of zerolab, each at 1 to 4 ranks;
// behaviours_test.cpp has the parameters.

#include "stages/comm/collectives.hpp"
#include "stages/device/cpu/cpu_device.hpp"
#include "stages/model/parameter_state.hpp"
#include "stages/partition/layout.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/described_training.hpp"
#include "tests/support/run_ranks.hpp"
#include "tests/support/scripted.hpp"
#include "tests/support/thrown.hpp"
#include "tests/support/weight_history.hpp"

namespace zerolab::test {
namespace {

constexpr std::array kRanks{1, 2, 3, 4};
constexpr Index kMuch = Index{1} << 40;
const std::vector<Shape> kShapes{{15}, {5}, {1}, {7, 3}};

Index calls(const RankReport& report, Op op) {
  const auto found = report.comm.traffic.find(op);
  return found == report.comm.traffic.end() ? 0 : found->second.calls;
}

TEST_CASE("behaviour 23: a reduced shard is the mean over ranks, its padding zero", "[zero3]") {
  // rank r gives element i of every weight 10 r + i; the mean is 10 (N - 1) / 2 + i
  const Script script = [](Index element, const Moment& moment) {
    return static_cast<float>(10 * moment.rank + element);
  };
  for (const int ranks : kRanks) {
    for (const bool scatter : {true, false}) {
      for (const bool contiguous : {true, false}) {
        Training training = training_of_script(kShapes, script, 3);
        training.settings.zero.reduce_scatter = scatter;
        training.settings.zero.contiguous_gradients = contiguous;
        training.steps = 2;
        WeightHistory history;
        run(ranks, with_history(training, history));
        REQUIRE(history.gradient.size() == kShapes.size());
        for (std::size_t p = 0; p < kShapes.size(); ++p) {
          std::vector<float> mean;
          for (Index i = 0; i < numel(kShapes[p]); ++i) {
            mean.push_back(5 * static_cast<float>(ranks - 1) + static_cast<float>(i));
          }
          CHECK(largest_difference({history.gradient[p]}, {mean}) < 1e-5);
        }
      }
    }
  }
}

TEST_CASE(
    "behaviour 24: several tensors are reduced in one collective, also one of fewer elements "
    "than ranks",
    "[zero3]") {
  for (const int ranks : kRanks) {
    Training training = training_of_script(
        {{1}, {9}, {2}}, [](Index, const Moment& m) { return static_cast<float>(m.rank); }, 3);
    training.settings.zero.reduce_bucket_size = kMuch;
    training.steps = 1;
    WeightHistory history;
    const RankReport report = run(ranks, with_history(training, history))[0];
    CHECK(calls(report, Op::reduce_scatter) == 1);
    const float mean = static_cast<float>(ranks - 1) / 2;
    CHECK(largest_difference(history.gradient,
                             {{mean}, std::vector<float>(9, mean), std::vector<float>(2, mean)}) <
          1e-6);
  }
}

TEST_CASE(
    "behaviours 25 and 26: bucket size, also smaller than a parameter, contiguous, overlap "
    "and reduce_scatter change no bit",
    "[zero3]") {
  for (const int ranks : kRanks) {
    const auto expected = bits(run(ranks, training_of(tiny_mlp(), 0))[0]);
    for (const int stage : {1, 2, 3}) {
      for (const Index bucket : {Index{1}, Index{50}, kMuch}) {
        for (const int flags : {0, 1, 2, 3, 4, 5, 6, 7}) {
          INFO(ranks << " ranks, stage " << stage << ", bucket " << bucket << ", flags " << flags);
          Training training = training_of(tiny_mlp(), stage);
          training.settings.zero.reduce_bucket_size = bucket;
          training.settings.zero.contiguous_gradients = (flags & 1) != 0;
          training.settings.zero.overlap_comm = (flags & 2) != 0;
          training.settings.zero.reduce_scatter = (flags & 4) != 0;
          training.steps = 3;
          const auto got = bits(run(ranks, training)[0]);
          CHECK(got == std::vector<std::string>(expected.begin(), expected.begin() + 3));
        }
      }
    }
  }
}

TEST_CASE("behaviour 27: micro-steps add up to one big batch, and every step starts from zero",
          "[zero3]") {
  DescribedModel model{.vocabulary = 7, .width = 5, .tied = true};
  model.parts = {linear_part("up", 5, 3), gelu_part("gelu", 3), linear_part("down", 3, 5)};
  // against plain arithmetic, in every stage at 1 to 4 ranks, three steps of three micro-steps
  CHECK(wrong_in_any_stage(model, [](Training& training) {
          training.settings.gradient_accumulation_steps = 3;
        }).empty());
  for (const int stage : {0, 1, 2, 3}) {
    INFO("stage " << stage);
    // the same samples on one rank, by twos three times and all six at once
    Training by_twos = training_of_described(model, stage);
    by_twos.settings.gradient_accumulation_steps = 3;
    Training at_once = training_of_described(model, stage);
    at_once.settings.micro_batch = 6;
    WeightHistory in_parts, whole;
    run(1, with_history(by_twos, in_parts));
    run(1, with_history(at_once, whole));
    CHECK(largest_difference(in_parts.gradient, whole.gradient) < 1e-5);
    CHECK(largest_difference(in_parts.latest, whole.latest) < 1e-5);
  }
}

TEST_CASE("behaviour 30: a gradient reduced twice, and one of another size, are refused",
          "[zero3]") {
  Parameter parameter{"head.weight", 0, {7}, Initial::zeros()};
  Recorder recorder(0);
  for (const GradientStatus to : {GradientStatus::partial, GradientStatus::ready,
                                  GradientStatus::reducing, GradientStatus::reduced}) {
    ParameterState::move_gradient(parameter, to, recorder);
  }
  const auto twice = thrown_by(
      [&] { ParameterState::move_gradient(parameter, GradientStatus::reducing, recorder); });
  REQUIRE(twice);
  CHECK(twice->code() == Code::gradient_state);

  // A gradient always has the size of its parameter; ranks may disagree about that.
  for (const int ranks : {2, 3, 4}) {
    const auto size = thrown_by([&] {
      run_ranks(ranks, [](Communicator& communicator) {
        Recorder of_rank(communicator.rank());
        Ledger ledger("device", of_rank);
        CpuDevice device(ledger);
        CommStream comm(communicator, device, ledger, of_rank);
        std::vector<float> values(100, 1);
        const PieceLayout pieces{communicator.rank() == 1 ? 12 : 24, communicator.size()};
        Pending pending =
            reduce_scatter(comm, {{values.data(), pieces.bounds()}}, 1, "head.weight");
        comm.wait(pending);
      });
    });
    REQUIRE(size);
    CHECK(size->code() == Code::collective_mismatch);
  }
}

TEST_CASE("behaviour 31: stages 0 and 1 reduce a bucket once a step, 2 and 3 once a micro-step",
          "[zero3]") {
  for (const int ranks : kRanks) {
    for (const int stage : {0, 1, 2, 3}) {
      for (const Index bucket : {Index{1}, kMuch}) {
        Training training = training_of_script(
            kShapes, [](Index, const Moment& m) { return static_cast<float>(m.rank); }, stage);
        training.settings.gradient_accumulation_steps = 3;
        training.settings.zero.reduce_bucket_size = bucket;
        training.steps = 2;
        const RankReport report = run(ranks, training)[0];
        const Index buckets = bucket == 1 ? static_cast<Index>(kShapes.size()) : 1;
        CHECK(calls(report, stage == 0 ? Op::all_reduce : Op::reduce_scatter) ==
              2 * buckets * (stage < 2 ? 1 : 3));
      }
    }
  }
}

}  // namespace
}  // namespace zerolab::test
