// bf16 and fp16 are the same training in every stage: N1 and N3 of the design's section 3, and
// settings that only these modes have.

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <set>

#include "tests/support/catch.hpp"
#include "tests/support/layers.hpp"
#include "tests/support/run_ranks.hpp"
#include "tests/support/scripted.hpp"
#include "tests/support/thrown.hpp"
#include "tests/support/weight_history.hpp"

using namespace zerolab;
using namespace zerolab::test;

namespace {

constexpr std::array kStages{0, 1, 2, 3};
constexpr std::array kTypes{Dtype::bf16, Dtype::fp16};

Training with(Training training, Dtype dtype) {
  training.settings.dtype = dtype;
  training.settings.loss_scale.initial_scale_power = 8;
  return training;
}

// Equal on all ranks; with what rounding has cost.
std::vector<std::string> bits_of(int ranks, const Training& training) {
  const std::vector<RankReport> reports = run(ranks, training);
  for (const RankReport& report : reports) REQUIRE(bits(report) == bits(reports[0]));
  std::vector<std::string> lines = bits(reports[0]);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const StepResult& step = reports[0].steps[i];
    lines[i] += fmt::format(" {} {} {} {}", step.scale, step.skipped, step.rounding.rounded,
                            step.rounding.flushed);
  }
  return lines;
}

double ulps_of_fp32(double a, double b) { return std::abs(a - b) / std::abs(b) / 0x1p-23; }

}  // namespace

TEST_CASE("N1: in bf16 and fp16 all stages give the same bits at 1, 2, 3 and 4 ranks", "[engine]") {
  for (const Dtype dtype : kTypes) {
    for (const NamedTraining& each : small_trainings()) {
      for (const int ranks : {1, 2, 3, 4}) {
        const auto expected = bits_of(ranks, with(each.training(0), dtype));
        REQUIRE(expected.size() == 10);
        CHECK(expected != bits_of(ranks, each.training(0)));  // not fp32 by another name
        for (const int stage : {1, 2, 3}) {
          INFO(name_of(dtype) << ", " << each.name << ", " << ranks << " ranks, stage " << stage);
          CHECK(bits_of(ranks, with(each.training(stage), dtype)) == expected);
        }
      }
    }
  }
}

TEST_CASE("N1: with accumulation the stages differ by rounding, unless each micro-step is reduced",
          "[engine]") {
  for (const Dtype dtype : {Dtype::fp32, Dtype::bf16, Dtype::fp16}) {
    std::vector<std::vector<std::string>> summed, reduced;
    std::vector<RankReport> reports;
    for (const int stage : kStages) {
      INFO(name_of(dtype) << ", stage " << stage);
      Training training = with(training_of(tiny_transformer(), stage), dtype);
      training.steps = 4;
      training.settings.gradient_accumulation_steps = 4;
      reports.push_back(run(3, training)[0]);
      summed.push_back(bits(reports.back()));
      training.settings.zero.reduce_every_micro_step = true;
      reduced.push_back(bits(run(3, training)[0]));
      CHECK(reduced.back() == reduced.front());
      // stages 2 and 3 reduce every micro-step as it is
      if (stage >= 2) CHECK(summed.back() == reduced.back());
    }
    CHECK(summed[1] == summed[0]);
    CHECK(summed[2] != summed[0]);
    // The first step starts from the same weights: an ulp of the gradient's type, and no more.
    const double ulp = dtype == Dtype::fp32 ? 16 : dtype == Dtype::fp16 ? 0x1p13 : 0x1p16;
    CHECK(reports[2].steps[0].loss == reports[0].steps[0].loss);
    CHECK(ulps_of_fp32(reports[2].steps[0].grad_norm, reports[0].steps[0].grad_norm) < ulp);
    for (std::size_t i = 0; i < 4; ++i) {
      CHECK(ulps_of_fp32(reports[2].steps[i].loss, reports[0].steps[i].loss) < 16 * ulp);
    }
  }
}

TEST_CASE("reducing every micro-step costs stages 0 and 1 as many reductions", "[engine]") {
  for (const int stage : {0, 1}) {
    Training training = training_of(tiny_transformer(), stage);
    training.settings.gradient_accumulation_steps = 3;
    const Op op = stage == 0 ? Op::all_reduce : Op::reduce_scatter;
    const Traffic once = run(3, training)[0].comm.traffic.at(op);
    training.settings.zero.reduce_every_micro_step = true;
    const Traffic each = run(3, training)[0].comm.traffic.at(op);
    CHECK(each.calls == 3 * once.calls);
    CHECK(each.bytes_sent == 3 * once.bytes_sent);
  }
}

TEST_CASE("N3: in 16 bits neither buckets nor overlap nor prefetching change a bit", "[engine]") {
  for (const Dtype dtype : kTypes) {
    for (const int stage : kStages) {
      std::vector<std::string> expected;
      for (const bool overlap : {false, true}) {
        for (const Index bucket : {Index{1}, Index{100}, Index{1} << 40}) {
          Training training = with(training_of(tiny_transformer(), stage), dtype);
          training.steps = 3;
          training.settings.gradient_accumulation_steps = 2;
          training.settings.zero.overlap_comm = overlap;
          training.settings.zero.contiguous_gradients = overlap;
          training.settings.zero.reduce_scatter = !overlap;
          training.settings.zero.reduce_bucket_size = bucket;
          training.settings.zero.prefetch_bucket_size = overlap ? 1000 : 0;
          training.settings.zero.param_persistence_threshold = overlap ? 9 : 0;
          training.settings.activation_checkpointing = overlap;
          const std::vector<std::string> now = bits_of(3, training);
          if (expected.empty()) expected = now;
          INFO(name_of(dtype) << ", stage " << stage << ", bucket " << bucket);
          CHECK(now == expected);
        }
      }
    }
  }
}

TEST_CASE("whatever gradients are accumulated in and sent as, all stages give the same bits",
          "[engine]") {
  std::set<std::vector<std::string>> different;
  for (const Dtype dtype : {Dtype::fp32, Dtype::bf16, Dtype::fp16}) {
    for (const Dtype sum : {Dtype::fp32, dtype}) {
      for (const Dtype sent : {Dtype::fp32, Dtype::fp16, Dtype::bf16}) {
        std::vector<std::string> expected;
        for (const int stage : kStages) {
          for (const bool contiguous : {false, true}) {
            Training training = with(training_of(tiny_transformer(), stage), dtype);
            training.steps = 4;
            training.settings.grad_accum_dtype = sum;
            training.settings.communication_data_type = sent;
            training.settings.zero.contiguous_gradients = contiguous;
            training.settings.zero.reduce_bucket_size = contiguous ? 5000 : 100;
            const std::vector<RankReport> reports = run(3, training);
            if (expected.empty()) expected = bits(reports[0]);
            INFO(name_of(dtype) << " summed in " << name_of(sum) << ", sent as " << name_of(sent)
                                << ", stage " << stage);
            CHECK(bits(reports[0]) == expected);
            const Op op = stage == 0 ? Op::all_reduce : Op::reduce_scatter;
            const Traffic& traffic = reports[0].comm.traffic.at(op);
            const Index trips = stage == 0 ? 2 : 1;
            const double bytes =
                2.0 / 3 * static_cast<double>(trips * traffic.elements * size_of(sent));
            CHECK(std::abs(static_cast<double>(traffic.bytes_sent) / bytes - 1) < 0.05);
          }
        }
        different.insert(expected);
      }
    }
  }
  // With one micro-step the sum is the gradient itself: what it is kept in only counts where it is
  // sent in more bits than that.
  CHECK(different.size() >= 9);
}

TEST_CASE("an accumulation in fp32 is closer to the truth than one in 16 bits", "[engine]") {
  // 256 + 1 is 256 in bf16, as are the means 64 + 1/4: what is added in bf16 is lost.
  for (const int stage : kStages) {
    for (const auto& [sum, mean] :
         {std::pair{Dtype::bf16, 256.0F / 4}, {Dtype::fp32, 259.0F / 4}}) {
      Training training = training_of_script(
          {{5}}, [](Index, const Moment& moment) { return moment.micro_step == 0 ? 256.0F : 1.0F; },
          stage);
      training.settings.dtype = Dtype::bf16;
      training.settings.grad_accum_dtype = sum;
      training.settings.communication_data_type = Dtype::fp32;
      training.settings.gradient_accumulation_steps = 4;
      training.steps = 1;
      WeightHistory history;
      run(3, with_history(training, history));
      INFO("stage " << stage << ", summed in " << name_of(sum));
      CHECK(largest_difference(history.gradient, {std::vector<float>(5, mean)}) < 1e-6);
    }
  }
}

TEST_CASE("four micro-steps of one sequence are one of four within rounding, each window anew",
          "[engine]") {
  for (const Dtype dtype : {Dtype::fp32, Dtype::bf16, Dtype::fp16}) {
    for (const int stage : kStages) {
      const auto gradient = [&](Index micro, Index accumulation, Index steps) {
        Training training = with(plain(training_of(tiny_transformer(), stage), 0), dtype);
        training.settings.micro_batch = micro;
        training.settings.gradient_accumulation_steps = accumulation;
        training.steps = steps;
        // the same sequences in every step, and for each rank the same ones however it takes them
        training.batches = [inner = training.batches, micro, accumulation](
                               Index, Index position, Index count, Index length,
                               std::int32_t* tokens, std::int32_t* targets) {
          const Index micro_step = position / (3 * micro);
          const Index rank = position / micro % 3;
          inner(1, rank * micro * accumulation + micro_step * micro, count, length, tokens,
                targets);
        };
        WeightHistory history;
        run(3, with_history(training, history));
        return history.gradient;
      };
      const Weights whole = gradient(4, 1, 1);
      const Weights split = gradient(1, 4, 1);
      INFO(name_of(dtype) << ", stage " << stage);
      const double rounding = dtype == Dtype::fp32   ? 0x1p-24
                              : dtype == Dtype::fp16 ? 0x1p-11
                                                     : 0x1p-8;
      CHECK(largest_difference(split, whole) < 8 * rounding);
      CHECK(gradient(1, 4, 3) == split);
    }
  }
}

TEST_CASE("frozen and tied parameters, padding and empty ones count in 16 bits as in fp32",
          "[engine]") {
  for (const Dtype dtype : kTypes) {
    std::vector<std::string> expected;
    for (const int stage : kStages) {
      Training training = with(training_of(tiny_transformer(), stage), dtype);
      training.build = [] {
        std::unique_ptr<Model> model = build_model(tiny_transformer());
        model->parameters().freeze("blocks.1");
        return model;
      };
      const auto now = bits_of(3, training);
      if (expected.empty()) expected = now;
      CHECK(now == expected);
    }
  }
}

// --- the loss scale ------------------------------------------------------------------------------

namespace {

/// The gradient is 1 on average over the ranks, but infinite on rank 1 in these steps.
Training overflowing(int stage, const std::set<Index>& steps) {
  Training training = training_of_script(
      {{7}, {2, 5}},
      [steps](Index, const Moment& moment) {
        if (moment.rank == 1 && steps.count(moment.step) > 0) {
          return std::numeric_limits<float>::infinity();
        }
        return static_cast<float>(moment.rank);
      },
      stage);
  training.settings.dtype = Dtype::fp16;
  training.settings.micro_batch = 1;
  training.settings.loss_scale.initial_scale_power = 4;
  training.settings.loss_scale.loss_scale_window = 2;
  training.settings.loss_scale.hysteresis = 1;
  return training;
}

}  // namespace

TEST_CASE("an overflow on one rank: scale, skipped steps and weights follow the table",
          "[engine]") {
  // By hand: window 2, so the third good update doubles the scale, and then every second one; the
  // overflow in step 4 halves it and skips the step. The mean gradient is 1, the learning rate 1.
  const std::vector<double> scales{16, 16, 16, 32, 16, 16, 16, 32, 32, 64};
  for (const int stage : kStages) {
    for (Index steps = 1; steps <= 10; ++steps) {
      INFO("stage " << stage << ", " << steps << " steps");
      Training training = overflowing(stage, {4});
      training.steps = steps;
      WeightHistory history;
      const auto reports = run(3, with_history(training, history));
      for (const RankReport& report : reports) {
        const StepResult& last = report.steps.back();
        CHECK(last.scale == scales[static_cast<std::size_t>(steps - 1)]);
        CHECK(last.skipped == (steps == 4));
        // 17 elements of mean 1, whatever the scale is and will be
        if (steps != 4) CHECK(std::abs(last.grad_norm - std::sqrt(17.0)) < 1e-12);
      }
      const auto updates = static_cast<float>(steps - (steps >= 4 ? 1 : 0));
      Weights expected = history.initial;
      for (std::vector<float>& of_parameter : expected) {
        for (float& weight : of_parameter) {
          for (float i = 0; i < updates; ++i) weight -= 1;
        }
      }
      CHECK(history.latest == expected);
    }
  }
}

TEST_CASE("a skipped step is none for Adam and for the schedule", "[engine]") {
  for (const int stage : kStages) {
    const auto last_update = [&](const std::set<Index>& overflows, Index steps) {
      Training training = overflowing(stage, overflows);
      training.settings.optimizer.type = OptimizerSettings::Type::adam;
      training.settings.optimizer.weight_decay = 0.1F;
      training.settings.schedule.type = ScheduleSettings::Type::warmup;
      training.settings.schedule.warmup_num_steps = 8;
      training.settings.loss_scale.loss_scale = 8;  // fixed
      training.steps = steps;
      WeightHistory history;
      const RankReport report = run(3, with_history(training, history))[0];
      return std::pair{history.latest, report.steps.back().learning_rate};
    };
    INFO("stage " << stage);
    // two of six steps skipped are the same four updates
    CHECK(last_update({2, 5}, 6) == last_update({}, 4));
    CHECK(last_update({2, 5}, 6) != last_update({}, 5));
  }
}

TEST_CASE("at the least scale a further overflow ends the run, and names rank and parameter",
          "[engine]") {
  for (const int stage : kStages) {
    Training training = overflowing(stage, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10});
    training.settings.loss_scale.min_loss_scale = 4;
    const auto errors = run_ranks(3, [&](Communicator& communicator) {
      Recorder recorder(communicator.rank());
      return thrown_by([&] { train(communicator, recorder, training); });
    });
    for (const auto& error : errors) {
      REQUIRE(error);
      INFO(error->what());
      CHECK(error->code() == Code::loss_scale_at_minimum);  // 16 -> 8 -> 4, and then
      CHECK(contains(error->what(), "step 3: "));
      CHECK(contains(error->what(), "'1.weight' on rank 1"));
      CHECK(contains(error->what(), "loss scale is 4"));
    }
  }
}

// --- clipping ------------------------------------------------------------------------------------

TEST_CASE("clipping divides by the norm of the unscaled mean gradient, in every type", "[engine]") {
  constexpr double kClip = 0.75;
  for (const Dtype dtype : {Dtype::fp32, Dtype::bf16, Dtype::fp16}) {
    WeightHistory of_stage_0;
    for (const int stage : kStages) {
      INFO(name_of(dtype) << ", stage " << stage);
      Training training = training_of_script(
          {{5}, {3}},
          [](Index element, const Moment& moment) {
            return static_cast<float>(element + 1) * static_cast<float>(moment.rank);
          },
          stage);
      training.settings.dtype = dtype;
      training.settings.micro_batch = 1;
      training.settings.loss_scale.initial_scale_power = 6;
      training.settings.gradient_clipping = kClip;
      training.steps = 1;
      WeightHistory history;
      const RankReport report = run(3, with_history(training, history))[0];
      // the mean over three ranks is 1 to 5 and 1 to 3: 69 is the sum of squares
      const double norm = std::sqrt(69.0);
      CHECK(std::abs(report.steps[0].grad_norm - norm) < 1e-6);
      const double factor = 1 / std::max((norm + 1e-6) / kClip, 1.0);
      for (std::size_t p = 0; p < 2; ++p) {
        for (std::size_t i = 0; i < history.latest[p].size(); ++i) {
          const double moved = static_cast<double>(history.initial[p][i]) -
                               static_cast<double>(history.latest[p][i]);
          CHECK(std::abs(moved - static_cast<double>(i + 1) * factor) < 1e-6);
        }
      }
      if (stage == 0) of_stage_0 = history;
      CHECK(history.latest == of_stage_0.latest);
    }
  }
}

TEST_CASE("a norm that is infinite or NaN is reported, and its step skipped, in every type",
          "[engine]") {
  for (const Dtype dtype : {Dtype::fp32, Dtype::bf16, Dtype::fp16}) {
    for (const float bad :
         {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
      for (const int stage : kStages) {
        INFO(name_of(dtype) << ", stage " << stage << ", " << bad);
        Training training = training_of_script(
            {{4}, {3}},
            [bad](Index element, const Moment& moment) {
              return moment.step == 2 && moment.rank >= 1 && element == 2 ? bad : 1.0F;
            },
            stage);
        training.settings.dtype = dtype;
        training.settings.micro_batch = 1;
        training.settings.loss_scale.initial_scale_power = 4;
        training.settings.gradient_clipping = 1;
        training.steps = 3;
        const auto reports = run(3, training);
        for (const RankReport& report : reports) {
          const StepResult& step = report.steps[1];
          CHECK(step.skipped);
          CHECK(std::isnan(step.grad_norm) == std::isnan(bad));
          CHECK_FALSE(std::isfinite(step.grad_norm));
          CHECK(contains(step.why_skipped, "the gradient of '1.weight' on rank 1 is not finite"));
          CHECK(step.hash == report.steps[0].hash);
          CHECK_FALSE(report.steps[2].skipped);
          CHECK(report.steps[2].hash != step.hash);
        }
      }
    }
  }
}

TEST_CASE("bf16 without check_grad_overflow takes the step, and the run ends there", "[engine]") {
  for (const int stage : kStages) {
    Training training = training_of_script(
        {{4}},
        [](Index, const Moment& moment) {
          return moment.step == 2 ? std::numeric_limits<float>::infinity() : 1.0F;
        },
        stage);
    training.settings.dtype = Dtype::bf16;
    training.settings.check_grad_overflow = false;
    const auto errors = run_ranks(2, [&](Communicator& communicator) {
      Recorder recorder(communicator.rank());
      return thrown_by([&] { train(communicator, recorder, training); });
    });
    for (const auto& error : errors) {
      REQUIRE(error);
      CHECK(error->code() == Code::not_finite);
      CHECK(contains(error->what(), "step 2: "));
    }
  }
}
