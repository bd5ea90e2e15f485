#include <fmt/format.h>

#include <array>

#include "lab/bench/topics.hpp"
#include "lab/bench/trainer.hpp"
#include "lab/table.hpp"
#include "stages/comm/link.hpp"

namespace zerolab::bench {
namespace {

constexpr double kCommunication = 0.6;  // of the time that is computed
constexpr int kSteps = 2;               // in one sample

struct Variant {
  bool link, overlap, prefetch;
};
constexpr std::array kVariants{
    Variant{false, false, false}, Variant{true, false, false}, Variant{true, false, true},
    Variant{true, true, false},   Variant{true, true, true},
};

Training training_with(Training training, const Variant& variant) {
  training.settings.zero.overlap_comm = variant.overlap;
  if (!variant.prefetch) training.settings.zero.prefetch_bucket_size = 0;
  return training;
}

/// The link on which the collectives of a step take that share of what the rank computes.
Link link_for(Communicator& everybody, const Training& training) {
  Trainer trainer(everybody, training_with(training, {}));
  trainer.run(3);
  const CommTotals before = trainer.comm();
  const double seconds = seconds_of([&] { trainer.run(5); });
  const CommTotals during = trainer.comm() - before;
  Index bytes = 0;
  for (const auto& [op, traffic] : during.traffic) bytes += traffic.bytes_sent;
  const double computing = seconds - during.exposed_seconds;
  return {.bandwidth = static_cast<double>(bytes) / (kCommunication * computing)};
}

std::vector<double> difference(const std::vector<double>& a, const std::vector<double>& b) {
  std::vector<double> result;
  for (std::size_t i = 0; i < a.size(); ++i) result.push_back(a[i] - b[i]);
  return result;
}

}  // namespace

std::vector<Figure> overlap(Worlds& worlds, Effort effort) {
  Communicator& everybody = *worlds.first.at(worlds.size);
  const Training training = training_of(effort.model("gpt-mini"), worlds.size, 3);
  worlds.meet();
  LinkCommunicator link(everybody, link_for(everybody, training));
  std::vector<std::unique_ptr<Trainer>> trainers;
  std::vector<Work> works;
  for (const Variant& variant : kVariants) {
    Communicator& network = variant.link ? static_cast<Communicator&>(link) : everybody;
    trainers.push_back(std::make_unique<Trainer>(network, training_with(training, variant)));
    trainers.back()->run(1);  // records the order of modules
    works.push_back({[trainer = trainers.back().get()] { trainer->run(kSteps); },
                     [&worlds, trainer = trainers.back().get()] {
                       worlds.meet();
                       trainer->run(1);  // the caches are this training's again
                     }});
  }
  const auto seconds = interleave(effort.rounds(15), works);
  worlds.meet();

  const auto step = [&](std::size_t variant) {
    return human_seconds(spread_of(seconds[variant]).median / kSteps) + " a step";
  };
  const std::vector<double> all = difference(seconds[1], seconds[0]);
  const auto hidden = [&](const std::string& what, std::size_t variant, Target target) {
    return percent_figure(what, ratio_of(difference(seconds[1], seconds[variant]), all), target,
                          step(variant));
  };
  constexpr Target kLittle{Target::Kind::at_most, 0.2};
  return {
      percent_figure("communication on the link / everything else", ratio_of(all, seconds[0]), {},
                     fmt::format("{} without the link, {} with it", step(0), step(1))),
      hidden("hidden with prefetch, without overlap", 2, kLittle),
      hidden("hidden with overlap, without prefetch", 3, kLittle),
      hidden("hidden with both", 4, {Target::Kind::at_least, 0.8}),
  };
}

}  // namespace zerolab::bench
