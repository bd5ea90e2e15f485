#include <fmt/format.h>

#include <utility>

#include "lab/bench/topics.hpp"
#include "lab/bench/trainer.hpp"
#include "lab/table.hpp"
#include "stages/stages.hpp"

namespace zerolab::bench {
namespace {

constexpr int kSteps = 2;  // in one sample

/// Seconds of a sample, [ranks][stage][round].
using Times = std::map<int, std::vector<std::vector<double>>>;

// All trainings live side by side and are stepped in turn: every stage at every number of ranks
// meets the same moments of the machine.
Times measure(Worlds& worlds, Effort effort) {
  std::vector<std::unique_ptr<Trainer>> trainers;
  std::vector<Work> works;
  std::vector<int> sizes;
  for (int ranks = 1; ranks <= worlds.size; ranks *= 2) {
    sizes.push_back(ranks);
    for (int stage = 0; stage <= kHighestStage; ++stage) {
      const auto world = worlds.first.find(ranks);
      Trainer* trainer = nullptr;
      if (world != worlds.first.end()) {
        trainer = trainers
                      .emplace_back(std::make_unique<Trainer>(
                          *world->second, training_of(effort.model("gpt-mini"), ranks, stage)))
                      .get();
      }
      const auto steps = [trainer](int count) {
        if (trainer != nullptr) trainer->run(count);
      };
      works.push_back({[steps] { steps(kSteps); },
                       [&worlds, steps] {
                         worlds.meet();
                         steps(1);  // the caches are this training's again
                       }});
    }
  }
  const auto seconds = interleave(effort.rounds(15), works);
  worlds.meet();
  Times times;
  for (std::size_t i = 0; i < seconds.size(); ++i) {
    times[sizes[i / (kHighestStage + 1)]].push_back(seconds[i]);
  }
  return times;
}

std::string step_time(const std::vector<double>& seconds) {
  return human_seconds(spread_of(seconds).median / kSteps) + " a step";
}

std::optional<Target> target_against_stage_0(int ranks, int stage) {
  if (ranks == 2 && stage == 3) return Target{Target::Kind::at_most, 1.25};
  return std::nullopt;
}

}  // namespace

std::vector<Figure> stages(Worlds& worlds, Effort effort) {
  Times times = measure(worlds, effort);
  std::vector<Figure> figures;
  for (const auto& [ranks, stages] : times) {
    figures.push_back({.what = fmt::format("{} rank(s), stage 0", ranks),
                       .value = "1",
                       .note = step_time(stages[0])});
    for (int stage = 1; stage <= kHighestStage; ++stage) {
      const std::vector<double>& seconds = stages[static_cast<std::size_t>(stage)];
      figures.push_back(ratio_figure(fmt::format("{} rank(s), stage {} / stage 0", ranks, stage),
                                     ratio_of(seconds, stages[0]),
                                     target_against_stage_0(ranks, stage), step_time(seconds)));
    }
  }
  if (!times.contains(4)) return figures;
  for (std::size_t stage = 0; stage <= kHighestStage; ++stage) {
    figures.push_back(ratio_figure(fmt::format("stage {}, 4 ranks / 2 ranks", stage),
                                   ratio_of(times[4][stage], times[2][stage]),
                                   Target{Target::Kind::at_most, 2.6}));
  }
  return figures;
}

}  // namespace zerolab::bench
