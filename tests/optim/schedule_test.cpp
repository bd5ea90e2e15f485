// Learning-rate schedules: against numbers worked out by hand, and alike in every stage.

#include "stages/optim/schedule.hpp"

#include <cmath>
#include <vector>

#include "tests/support/catch.hpp"
#include "tests/support/trainings.hpp"

namespace zerolab::test {
namespace {

using Type = ScheduleSettings::Type;
using WarmupType = ScheduleSettings::WarmupType;

void check_rates(const ScheduleSettings& settings, const std::vector<double>& expected) {
  for (std::size_t k = 0; k < expected.size(); ++k) {
    INFO("after " << k << " steps");
    const double rate =
        static_cast<double>(scheduled_learning_rate(settings, 0.1F, static_cast<Index>(k)));
    CHECK(rate == Approx(expected[k]).epsilon(1e-6).margin(1e-9));
  }
}

TEST_CASE("without a scheduler every step has the optimizer's learning rate", "[optim]") {
  check_rates({}, std::vector<double>(5, 0.1));
}

TEST_CASE("WarmupLR climbs and stays", "[optim]") {
  ScheduleSettings settings{.type = Type::warmup,
                            .warmup_type = WarmupType::linear,
                            .warmup_num_steps = 4,
                            .warmup_min_lr = 0.02F,
                            .warmup_max_lr = 0.06F};
  check_rates(settings, {0.02, 0.03, 0.04, 0.05, 0.06, 0.06, 0.06});
  settings.warmup_max_lr.reset();  // up to the optimizer's
  check_rates(settings, {0.02, 0.04, 0.06, 0.08, 0.1, 0.1});
  // logarithmic: ln 1, ln 2, ln 3, ln 4 over ln 4
  settings.warmup_type = WarmupType::log;
  check_rates(settings,
              {0.02, 0.02 + 0.08 * 0.5, 0.02 + 0.08 * std::log(3) / std::log(4), 0.1, 0.1});
  settings.warmup_num_steps = 1;  // two at least, or a logarithm would divide by zero
  check_rates(settings, {0.02, 0.1, 0.1});
}

TEST_CASE("WarmupDecayLR climbs and comes down in a straight line", "[optim]") {
  const ScheduleSettings settings{.type = Type::warmup_decay,
                                  .warmup_type = WarmupType::linear,
                                  .warmup_num_steps = 2,
                                  .total_num_steps = 6,
                                  .warmup_min_lr = 0.02F};
  check_rates(settings, {0.02, 0.06, 0.1, 0.08, 0.06, 0.04, 0.02, 0.02, 0.02});
}

TEST_CASE("WarmupCosineLR climbs and comes down along a cosine to its floor", "[optim]") {
  const ScheduleSettings settings{.type = Type::warmup_cosine,
                                  .warmup_type = WarmupType::linear,
                                  .warmup_num_steps = 2,
                                  .total_num_steps = 5,
                                  .warmup_min_ratio = 0.5F,
                                  .cos_min_ratio = 0.1F};
  // p = 1/3, 2/3, 1: (1 + cos)/2 = 0.75, 0.25, 0
  check_rates(settings, {0.05, 0.075, 0.01 + 0.09 * 0.75, 0.01 + 0.09 * 0.25, 0.01, 0.01, 0.01});
}

TEST_CASE("a schedule moves the weights as its rates say, in every stage", "[optim]") {
  // Plain gradient descent without clipping: the first step of the schedule has rate 0.
  for (const int ranks : {1, 3}) {
    std::vector<std::string> of_stage_0;
    for (const int stage : {0, 1, 2, 3}) {
      INFO("stage " << stage << ", " << ranks << " ranks");
      Training training = training_of(tiny_mlp(), stage);
      training.settings.schedule = {.type = Type::warmup_decay,
                                    .warmup_type = WarmupType::linear,
                                    .warmup_num_steps = 3,
                                    .total_num_steps = 6};
      training.settings.optimizer.weight_decay = 0;
      training.steps = 8;
      const RankReport report = run(ranks, training)[0];
      if (stage == 0) of_stage_0 = bits(report);
      CHECK(bits(report) == of_stage_0);
      std::vector<std::uint64_t> hashes;
      for (const StepResult& step : report.steps) hashes.push_back(step.hash);
      CHECK(hashes[1] != hashes[0]);
      CHECK(hashes[7] == hashes[6]);  // it has come down to nothing
      const float rate = training.settings.optimizer.learning_rate;
      CHECK(report.steps[0].learning_rate == 0);
      CHECK(report.steps[3].learning_rate == rate);
      CHECK(report.steps[4].learning_rate == Approx(rate * 2 / 3));
      CHECK(report.steps[7].learning_rate == 0);
    }
  }
}

TEST_CASE("a training under a schedule is the one whose rate somebody changes by hand", "[optim]") {
  // Each step's rate given as a constant one to a training that stops there: the same weights.
  Training training = training_of(tiny_mlp(), 2);
  training.settings.optimizer = {};
  training.settings.optimizer.type = OptimizerSettings::Type::sgd;
  training.settings.optimizer.learning_rate = 0.1F;
  training.settings.schedule = {.type = Type::warmup,
                                .warmup_type = WarmupType::linear,
                                .warmup_num_steps = 2,
                                .warmup_min_lr = 0.1F,
                                .warmup_max_lr = 0.1F};
  Training constant = training;
  constant.settings.schedule = {};
  CHECK(bits(run(2, training)[0]) == bits(run(2, constant)[0]));
}

}  // namespace
}  // namespace zerolab::test
