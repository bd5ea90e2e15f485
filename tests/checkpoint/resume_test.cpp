// Save, resume, go on: O6 of the oracles, at the same and at another stage and number of ranks.

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "lab/temporary_folder.hpp"
#include "stages/base/half.hpp"
#include "stages/engine/gathered_parameters.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/saved.hpp"

using namespace zerolab;
using namespace zerolab::test;

namespace {

constexpr std::array kStages{0, 1, 2, 3};
constexpr std::array kDtypes{Dtype::fp32, Dtype::bf16, Dtype::fp16};

Training in_type(Training training, Dtype dtype) {
  training.settings.dtype = dtype;
  if (dtype == Dtype::fp16) training.settings.loss_scale.initial_scale_power = 8;
  return training;
}

std::vector<std::string> bits_of(int ranks, const Training& training) {
  const std::vector<RankReport> reports = run(ranks, training);
  for (const RankReport& report : reports) REQUIRE(bits(report) == bits(reports[0]));
  return bits(reports[0]);
}

std::vector<std::string> behind(const std::vector<std::string>& lines, std::size_t steps) {
  return {lines.begin() + static_cast<std::ptrdiff_t>(steps), lines.end()};
}

/// The states of a training that has just been set up and has loaded.
States loaded_states(int ranks, const Training& training, const std::string& name) {
  return states_behind(ranks, training, resuming(training, name).resume);
}

/// The same step cut in another way: 24 sequences, one a micro-step.
Training of_24_sequences(Training training, int ranks) {
  training.settings.micro_batch = 1;
  training.settings.gradient_accumulation_steps = 24 / ranks;
  return training;
}

double relative_ulps(double a, double b) {
  return std::abs(a - b) / std::abs(b) / static_cast<double>(std::numeric_limits<float>::epsilon());
}

}  // namespace

TEST_CASE("resumed at the same number of ranks, any stage goes on as any other would have") {
  for (const NamedTraining& each : small_trainings()) {
    for (const Dtype dtype : kDtypes) {
      const int ranks = 3;
      const std::vector<std::string> whole = bits_of(ranks, in_type(each.training(0), dtype));
      for (const int from : kStages) {
        const TemporaryFolder folder;
        Training first = saving(in_type(each.training(from), dtype), folder.path(), {4});
        first.steps = 4;
        bits_of(ranks, first);
        for (const int to : kStages) {
          INFO(each.name << ", " << name_of(dtype) << ", stage " << from << " to " << to);
          const Training second =
              resuming(in_type(each.training(to), dtype), folder.path().string());
          CHECK(bits_of(ranks, second) == behind(whole, 4));
        }
      }
    }
  }
}

TEST_CASE("resumed with accumulation, a stage goes on as if it had not been interrupted") {
  for (const int stage : kStages) {
    for (const int ranks : {3, 4}) {
      Training training = training_of(tiny_transformer(), stage);
      training.settings.gradient_accumulation_steps = 3;
      const std::vector<std::string> whole = bits_of(ranks, training);
      const TemporaryFolder folder;
      Training first = saving(training, folder.path(), {3});
      first.steps = 3;
      bits_of(ranks, first);
      INFO("stage " << stage << ", " << ranks << " ranks");
      CHECK(bits_of(ranks, resuming(training, folder.path().string())) == behind(whole, 3));
    }
  }
}

TEST_CASE(
    "resumed behind a skipped step, scale and steps go on as if it had not been interrupted") {
  const auto all_of = [](const RankReport& report) {
    std::vector<std::string> lines = bits(report);
    for (std::size_t i = 0; i < lines.size(); ++i) {
      const StepResult& step = report.steps[i];
      lines[i] += fmt::format(" {} {} {}", step.scale, step.skipped, step.learning_rate);
    }
    return lines;
  };
  for (const int from : kStages) {
    const int to = 3 - from;
    const auto in_fp16 = [](int stage) {
      Training training = training_of(tiny_transformer(), stage);
      training.settings.dtype = Dtype::fp16;
      training.settings.loss_scale.initial_scale_power = 24;
      training.settings.loss_scale.loss_scale_window = 3;
      training.settings.schedule.type = ScheduleSettings::Type::warmup;
      training.settings.schedule.warmup_num_steps = 6;
      training.steps = 20;
      return training;
    };
    const RankReport whole = run(3, in_fp16(from))[0];
    Index at = 0;  // the last skipped step before the 14th
    for (const StepResult& step : whole.steps) {
      if (step.skipped && step.step < 14) at = step.step;
    }
    REQUIRE(at > 1);
    REQUIRE_FALSE(whole.steps[static_cast<std::size_t>(at)].skipped);
    const TemporaryFolder folder;
    Training first = saving(in_fp16(from), folder.path(), {at});
    first.steps = at;
    run(3, first);
    const Training second = resuming(in_fp16(to), folder.path().string());
    INFO("stage " << from << " to " << to << ", step " << at);
    CHECK(all_of(run(3, second)[0]) == behind(all_of(whole), static_cast<std::size_t>(at)));
  }
}

TEST_CASE("N ranks with one micro-step resume as one rank with N, and back, bit for bit") {
  for (const int ranks : {2, 4}) {
    for (const int from : kStages) {
      const int to = (from + ranks) % 4;
      const Training many = training_of(tiny_transformer(), from);
      Training alone = training_of(tiny_transformer(), to);
      alone.settings.gradient_accumulation_steps = ranks;
      const std::vector<std::string> whole = bits_of(ranks, many);
      INFO(ranks << " ranks, stage " << from << " and " << to);
      const auto resumed = [&](int first_ranks, Training first, int second_ranks,
                               const Training& second) {
        const TemporaryFolder folder;
        first = saving(first, folder.path(), {5});
        first.steps = 5;
        bits_of(first_ranks, first);
        return bits_of(second_ranks, resuming(second, folder.path().string()));
      };
      CHECK(resumed(ranks, many, 1, alone) == behind(whole, 5));
      CHECK(resumed(1, alone, ranks, many) == behind(whole, 5));
    }
  }
}

// From all numbers of ranks into all others; stages and models take turns, so that each stage meets
// each as source and as target.
TEST_CASE("at any other number of ranks the loaded states are the saved ones, bit for bit") {
  int turn = 0;
  for (const int from : {1, 2, 3, 4, 8}) {
    for (const int to : {1, 2, 3, 4, 8}) {
      if (from == to) continue;
      for (const NamedTraining& each : small_trainings()) {
        const Dtype dtype = kDtypes[static_cast<std::size_t>(turn % 3)];
        const int stage = turn % 4;
        const int target = turn / 4 % 4;
        ++turn;
        INFO(each.name << ", " << name_of(dtype) << ", " << from << " ranks in stage " << stage
                       << " to " << to << " in stage " << target);
        const TemporaryFolder folder;
        Training first = in_type(each.training(stage), dtype);
        first.steps = 2;
        const States saved = saved_states(from, first, folder.path());
        Training second = in_type(each.training(target), dtype);
        second.steps = 2;
        CHECK(loaded_states(to, second, folder.path().string()) == saved);
      }
    }
  }
}

TEST_CASE("at any other number of ranks training goes on within rounding") {
  int turn = 0;
  double worst_loss = 0, worst_norm = 0;
  for (const int from : {1, 2, 3, 4, 8}) {
    for (const int to : {1, 2, 3, 4, 8}) {
      if (from == to) continue;
      const int stage = turn % 4;
      const int target = turn / 4 % 4;
      ++turn;
      Training first = of_24_sequences(training_of(tiny_transformer(), stage), from);
      const RankReport whole = run(from, first)[0];
      const TemporaryFolder folder;
      first = saving(first, folder.path(), {4});
      first.steps = 4;
      run(from, first);
      const Training second = resuming(of_24_sequences(training_of(tiny_transformer(), target), to),
                                       folder.path().string());
      const RankReport rest = run(to, second)[0];
      REQUIRE(rest.steps.size() == 6);
      for (std::size_t i = 0; i < rest.steps.size(); ++i) {
        const StepResult& there = whole.steps[i + 4];
        worst_loss = std::max(worst_loss, relative_ulps(rest.steps[i].loss, there.loss));
        worst_norm = std::max(worst_norm, relative_ulps(rest.steps[i].grad_norm, there.grad_norm));
      }
    }
  }
  CAPTURE(worst_loss, worst_norm);
  CHECK(worst_loss < 1);
  CHECK(worst_norm < 8);
}

TEST_CASE("the 16-bit weights are right on every rank directly behind loading") {
  for (const Dtype dtype : {Dtype::bf16, Dtype::fp16}) {
    for (const int stage : kStages) {
      const TemporaryFolder folder;
      Training first = in_type(training_of(tiny_transformer(), 3 - stage), dtype);
      first.steps = 3;
      const States saved = saved_states(4, first, folder.path());
      Training second = in_type(training_of(tiny_transformer(), stage), dtype);
      second.steps = 3;
      std::vector<int> wrong(3, 0);
      second.resume = [&, resume = resuming(second, folder.path().string()).resume](
                          Runtime& runtime, Engine& engine) {
        resume(runtime, engine);
        for (Parameter& parameter : engine.model().parameters()) {
          const GatheredParameters scope(runtime, engine.stage(), {&parameter});
          const std::vector<float> values = read_in_scope(runtime, parameter);
          const std::vector<std::uint32_t>& expected = saved.at("weights/" + parameter.name());
          for (std::size_t i = 0; i < values.size(); ++i) {
            wrong[static_cast<std::size_t>(runtime.rank())] +=
                std::bit_cast<std::uint32_t>(values[i]) == expected[i] ? 0 : 1;
          }
        }
      };
      run(3, second);
      INFO(name_of(dtype) << ", stage " << stage);
      CHECK(wrong == std::vector<int>{0, 0, 0});
      for (const auto& [state, bits] : saved) {  // and they are rounded from the masters
        if (state.rfind("weights/", 0) != 0) continue;
        const std::vector<std::uint32_t>& exact = saved.at("exact" + state.substr(7));
        for (std::size_t i = 0; i < bits.size(); ++i) {
          const auto value = std::bit_cast<float>(exact[i]);
          const float rounded_value =
              dtype == Dtype::bf16 ? widened(rounded<Bf16>(value)) : widened(rounded<Fp16>(value));
          REQUIRE(std::bit_cast<float>(bits[i]) == rounded_value);
        }
      }
    }
  }
}

TEST_CASE("in another type training goes on from the masters") {
  for (const Dtype from : kDtypes) {
    for (const Dtype to : kDtypes) {
      const TemporaryFolder folder;
      Training first = in_type(training_of(tiny_mlp(), 1), from);
      first.steps = 2;
      const States saved = saved_states(3, first, folder.path());
      Training second = in_type(training_of(tiny_mlp(), 3), to);
      second.steps = 2;
      const States loaded = loaded_states(2, second, folder.path().string());
      for (const auto& [state, bits] : saved) {
        if (state.rfind("weights/", 0) == 0) continue;
        INFO(name_of(from) << " to " << name_of(to) << ", " << state);
        CHECK(loaded.at(state) == bits);
      }
    }
  }
}
