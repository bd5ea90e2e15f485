#include <fmt/format.h>

#include <fstream>

#include "lab/bench/topics.hpp"
#include "lab/bench/trainer.hpp"
#include "lab/table.hpp"
#include "lab/temporary_folder.hpp"

namespace zerolab::bench {
namespace {

constexpr Target kTarget{Target::Kind::at_most, 0.02};

Figure measure(Worlds& worlds, const std::string& model, int stage, int steps, Effort effort) {
  const TemporaryFolder folder;
  const auto file = folder.path() / fmt::format("rank{}.events.jsonl", worlds.rank);
  const Training training = training_of(model, worlds.size, stage);
  Communicator& everybody = *worlds.first.at(worlds.size);
  Trainer silent(everybody, training);
  Trainer recorded(everybody, training, std::make_unique<std::ofstream>(file));
  const auto work = [&](Trainer& trainer) {
    return Work{[&trainer, steps] { trainer.run(steps); },
                [&] {
                  worlds.meet();
                  trainer.run(1);
                }};
  };
  const auto seconds = interleave(effort.rounds(41), {work(recorded), work(silent)});
  worlds.meet();
  Spread added = ratio_of(seconds[0], seconds[1]);
  for (double* part : {&added.median, &added.low, &added.high}) *part -= 1;
  return percent_figure(
      fmt::format("{}, stage {}: added to a step", model, stage), added, kTarget,
      fmt::format("{} a step", human_seconds(spread_of(seconds[1]).median / steps)));
}

}  // namespace

std::vector<Figure> recording(Worlds& worlds, Effort effort) {
  std::vector<Figure> figures;
  for (const int stage : {0, 3}) {
    figures.push_back(measure(worlds, "gpt-nano", stage, effort.quick ? 1 : 10, effort));
    if (!effort.quick) figures.push_back(measure(worlds, "gpt-mini", stage, 2, effort));
  }
  return figures;
}

}  // namespace zerolab::bench
