// Kind c of docs/cases.md, as far as it is about 16 bits and steps that are skipped.

#include <cmath>
#include <limits>
#include <set>

#include "tests/support/catch.hpp"
#include "tests/support/chain.hpp"
#include "tests/support/layers.hpp"
#include "tests/support/run_ranks.hpp"
#include "tests/support/sandwich.hpp"
#include "tests/support/scripted.hpp"
#include "tests/support/thrown.hpp"
#include "tests/support/tiny_tied.hpp"
#include "tests/support/weight_history.hpp"

using namespace zerolab;
using namespace zerolab::test;

namespace {

constexpr std::array kStages{0, 1, 2, 3};
constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

/// Passes its input on; on one rank, from one step to another, something that is not a number.
class Poisonous : public Module {
 public:
  struct When {
    int rank;
    Index first, last;
  };
  explicit Poisonous(When when) : Module("poisonous"), when_(when) {}

 protected:
  Tensor do_forward(const Tensor& input) override {
    const Recorder& recorder = context().recorder;
    const bool now = recorder.rank() == when_.rank && recorder.step() >= when_.first &&
                     recorder.step() <= when_.last;
    if (!now) return input;
    Tensor output = activation(input.shape(), "poison");
    device().fill(output.values(), output.numel(), kNan);
    return output;
  }
  Tensor do_backward(const Tensor& output_gradient) override { return output_gradient; }

 private:
  When when_;
};

Training poisoned(Poisonous::When when, int stage, Dtype dtype) {
  Training training = training_of_sandwich(
      [when](ParameterSet&) { return std::make_unique<Poisonous>(when); }, stage);
  training.settings.dtype = dtype;
  training.settings.loss_scale.initial_scale_power = 4;
  training.settings.loss_scale.hysteresis = 1;
  return training;
}

std::vector<std::optional<Error>> errors_of(int ranks, const Training& training) {
  return run_ranks(ranks, [&](Communicator& communicator) {
    Recorder recorder(communicator.rank());
    return thrown_by([&] { train(communicator, recorder, training); });
  });
}

Index calls(const CommTotals& totals, Op op) {
  const auto found = totals.traffic.find(op);
  return found == totals.traffic.end() ? 0 : found->second.calls;
}

}  // namespace

TEST_CASE("B28: a tiny tied model in fp16 has the same losses and weights in all stages",
          "[cases]") {
  const auto training = [](int stage) {
    Training result = training_of_chain(tiny_tied, 4, stage);
    result.settings.dtype = Dtype::fp16;
    return result;
  };
  WeightHistory of_stage_0;
  const RankReport first = run(4, with_history(training(0), of_stage_0))[0];
  REQUIRE(first.steps.size() == 10);
  for (const int stage : {1, 2, 3}) {
    WeightHistory history;
    const RankReport now = run(4, with_history(training(stage), history))[0];
    INFO("stage " << stage << ", largest difference of a weight "
                  << largest_difference(history.latest, of_stage_0.latest));
    CHECK(bits(now) == bits(first));
    CHECK(history.latest == of_stage_0.latest);
  }
  Training fp32 = training(0);
  fp32.settings.dtype = Dtype::fp32;
  const RankReport exact = run(4, fp32)[0];
  CHECK(std::abs(first.steps.back().loss - exact.steps.back().loss) < 1e-3);
}

TEST_CASE("B38: with learning rate 0 the norm of a 16-bit run is the same in every step and stage",
          "[cases]") {
  for (const Dtype dtype : {Dtype::bf16, Dtype::fp16}) {
    std::set<double> norms;
    for (const int stage : kStages) {
      Training training = training_of(tiny_transformer(), stage);
      training.settings.dtype = dtype;
      training.settings.loss_scale.initial_scale_power = 10;
      training.settings.loss_scale.loss_scale_window = 2;  // the scale changes, the norm does not
      training.settings.optimizer.learning_rate = 0;
      training.settings.gradient_clipping = 1e9;
      training.steps = 6;
      training.batches = [inner = training.batches](Index, Index position, Index count,
                                                    Index length, std::int32_t* tokens,
                                                    std::int32_t* targets) {
        inner(1, position, count, length, tokens, targets);
      };
      const RankReport report = run(2, training)[0];
      const bool scaled = dtype == Dtype::fp16;
      CHECK((report.steps.front().scale != report.steps.back().scale) == scaled);
      for (const StepResult& step : report.steps) {
        // another scale is another set of denormals, and nothing more
        if (scaled) {
          CHECK(std::abs(step.grad_norm / report.steps.front().grad_norm - 1) < 1e-4);
        } else {
          norms.insert(step.grad_norm);
        }
      }
      if (scaled) norms.insert(report.steps.front().grad_norm);
    }
    CHECK(norms.size() == 1);
  }
}

TEST_CASE("B41: an overflow halves the scale and changes nothing else, alike in all stages",
          "[cases]") {
  for (const int stage : kStages) {
    INFO("stage " << stage);
    Training training = training_of_script(
        {{6}, {5}},
        [](Index element, const Moment& moment) {
          return moment.step <= 2 && moment.rank == 1 && element == 3 ? kInfinity : 1.0F;
        },
        stage);
    training.settings.dtype = Dtype::fp16;
    training.settings.micro_batch = 1;
    training.settings.loss_scale.initial_scale_power = 4;
    training.settings.loss_scale.hysteresis = 1;
    training.steps = 3;
    WeightHistory history;
    const RankReport report = run(3, with_history(training, history))[0];
    const std::vector<double> scales{report.steps[0].scale, report.steps[1].scale,
                                     report.steps[2].scale};
    CHECK(scales == std::vector<double>{16, 8, 4});
    CHECK(contains(report.steps[0].why_skipped, "loss scale 16 -> 8"));
    CHECK(contains(report.steps[1].why_skipped, "loss scale 8 -> 4"));
    CHECK(report.steps[0].hash == report.steps[1].hash);
    Weights expected = history.initial;  // one update of three, the first one
    for (auto& of_parameter : expected) {
      for (float& weight : of_parameter) weight -= 1;
    }
    CHECK(history.latest == expected);

    // a loss that stays NaN is an error when the scale has come down
    for (const auto& error : errors_of(4, poisoned({2, 3, 10}, stage, Dtype::fp16))) {
      REQUIRE(error);
      INFO(error->what());
      CHECK(error->code() == Code::loss_scale_at_minimum);
      CHECK(contains(error->what(), "step 7: "));  // 16, 8, 4, 2 in steps 3 to 6, then 1
      CHECK(contains(error->what(), "rank 2"));
    }
  }
}

TEST_CASE("B42: every skipped bf16 step is told, and counted", "[cases]") {
  for (const int stage : kStages) {
    INFO("stage " << stage);
    const auto training = [stage](Index first_bad, Index steps) {
      Training result = training_of_script(
          {{6}, {5}},
          [first_bad](Index element, const Moment& moment) {
            return moment.step >= first_bad && moment.rank == 1 && element == 3 ? kInfinity : 1.0F;
          },
          stage);
      result.settings.dtype = Dtype::bf16;
      result.steps = steps;
      return result;
    };
    const RankReport report = run(2, training(3, 4))[0];
    for (std::size_t i = 0; i < 4; ++i) {
      CHECK(report.steps[i].skipped == (i >= 2));
      CHECK(contains(report.steps[i].why_skipped, i >= 2 ? "'1.weight' on rank 1" : ""));
    }
    // a run that does nothing else ends with an error: here, after one step and after three
    for (const Index steps : {1, 10}) {
      for (const auto& error : errors_of(2, training(1, steps))) {
        REQUIRE(error);
        INFO(error->what());
        CHECK(error->code() == Code::not_finite);
        CHECK(contains(error->what(), steps == 1 ? "step 1: " : "step 3: "));
        CHECK(contains(error->what(), "'1.weight' on rank 1"));
      }
    }
  }
}

TEST_CASE("B43: a loss that is not finite on one rank skips the step on all, and names that rank",
          "[cases]") {
  for (const Dtype dtype : {Dtype::fp32, Dtype::bf16, Dtype::fp16}) {
    for (const int stage : kStages) {
      INFO(name_of(dtype) << ", stage " << stage);
      const auto reports = run(4, poisoned({3, 2, 2}, stage, dtype));
      for (const RankReport& report : reports) {
        for (std::size_t i = 0; i < report.steps.size(); ++i) {
          CHECK(report.steps[i].skipped == (i == 1));
          CHECK(report.steps[i].hash == reports[0].steps[i].hash);
        }
        CHECK(contains(report.steps[1].why_skipped, "the loss is nan (rank 3)"));
        CHECK(report.steps[1].hash == report.steps[0].hash);
        CHECK(report.steps[9].hash != report.steps[0].hash);
      }
    }
  }
}

TEST_CASE("B45: a sum in fp16 neither overflows nor vanishes, unless it is divided first",
          "[cases]") {
  constexpr float kLarge = 28672, kSmallest = 0x1p-24F;
  for (const int stage : kStages) {
    for (const Dtype sent : {Dtype::fp16, Dtype::fp32}) {
      for (const double predivide : {0.0, 1.0, 4.0, 8.0}) {  // 0: prescale_gradients
        for (const float gradient : {kLarge, kSmallest}) {
          Training training = training_of_script(
              {{5}}, [=](Index, const Moment&) { return gradient; }, stage);
          training.settings.dtype = Dtype::fp16;
          training.settings.micro_batch = 1;
          training.settings.loss_scale.loss_scale = 1;
          training.settings.communication_data_type = sent;
          training.settings.prescale_gradients = predivide == 0;
          if (predivide > 0) training.settings.gradient_predivide_factor = predivide;
          training.steps = 1;
          WeightHistory history;
          run(8, with_history(training, history));
          // A sum in fp32 holds eight times the largest. In fp16 a quarter of the smallest is 0.
          const bool lost = gradient == kSmallest && predivide != 1 && sent == Dtype::fp16;
          INFO("stage " << stage << ", " << gradient << ", divided by " << predivide << " before, "
                        << name_of(sent));
          CHECK(history.gradient == Weights{std::vector<float>(5, lost ? 0 : gradient)});
        }
      }
    }
  }
}

TEST_CASE("B99: a skipped step gathers nothing", "[cases]") {
  for (const int stage : {1, 2, 3}) {
    const auto gathers = [stage](float gradient) {
      Training training = training_of_script(
          {{6}},
          [gradient](Index, const Moment& moment) { return moment.step == 2 ? gradient : 1.0F; },
          stage);
      training.settings.zero.param_persistence_threshold = 100;  // stage 3: gathered by the update
      training.steps = 2;
      const RankReport report = run(4, training)[0];
      CHECK(report.steps[1].skipped == !std::isfinite(gradient));
      CHECK(calls(report.comm, stage == 0 ? Op::all_reduce : Op::reduce_scatter) == 2);
      return calls(report.comm, Op::all_gather);
    };
    INFO("stage " << stage);
    CHECK(gathers(kInfinity) == gathers(1) - 1);
  }
}
