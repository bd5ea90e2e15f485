#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "lab/bench/timed_device.hpp"
#include "lab/bench/topics.hpp"
#include "lab/bench/trainer.hpp"
#include "lab/table.hpp"

namespace zerolab::bench {

std::string_view name_of(Part part) {
  switch (part) {
    case Part::products:
      return "products of linear layers";
    case Part::attention_products:
      return "products of attention";
    case Part::softmax:
      return "softmax";
    case Part::layer_norm:
      return "layer norm";
    case Part::gelu:
      return "GELU";
    case Part::cross_entropy:
      return "cross entropy";
    case Part::embedding:
      return "embeddings";
    case Part::moving:
      return "copies, fills and sums";
    case Part::update:
      return "update (Adam)";
    case Part::norm:
      return "exact gradient norm";
    case Part::hash:
      return "parameter hash";
  }
  return "?";
}

namespace {

/// One rank's training and its shares of every round, [part][round]; two more parts behind the
/// device's: waiting for collectives, and everything else.
class Profiled {
 public:
  Profiled(Communicator& communicator, const Training& training)
      : trainer_(communicator, training, nullptr, [this](Ledger& ledger) {
          auto device = std::make_unique<TimedDevice>(ledger);
          device_ = device.get();
          return device;
        }) {}

  void run(int steps) {
    const PartSeconds before = device_->seconds();
    const double waited = trainer_.comm().exposed_seconds;
    const double seconds = seconds_of([&] { trainer_.run(steps); });
    double rest = seconds;
    const auto note = [&](std::size_t part, double spent) {
      shares_[part].push_back(spent / seconds);
      rest -= spent;
    };
    for (std::size_t part = 0; part < kParts; ++part) {
      note(part, device_->seconds()[part] - before[part]);
    }
    note(kParts, trainer_.comm().exposed_seconds - waited);
    shares_[kParts + 1].push_back(rest / seconds);
  }
  void warm_up() { trainer_.run(1); }

  std::vector<Figure> figures(const std::string& what) const {
    std::vector<Figure> result;
    for (std::size_t part = 0; part < shares_.size(); ++part) {
      const std::string_view name = part < kParts    ? name_of(static_cast<Part>(part))
                                    : part == kParts ? "standing before a collective"
                                                     : "everything else";
      result.push_back(percent_figure(fmt::format("{}: {}", what, name), spread_of(shares_[part])));
    }
    return result;
  }

 private:
  TimedDevice* device_ = nullptr;
  Trainer trainer_;
  std::array<std::vector<double>, kParts + 2> shares_;
};

}  // namespace

std::vector<Figure> profile(Worlds& worlds, Effort effort) {
  const int steps = effort.quick ? 1 : 3;
  std::vector<Figure> figures;
  for (int ranks = 1; ranks <= worlds.size; ranks *= 2) {
    for (const int stage : {0, 3}) {
      if (ranks == 1 && stage == 3) continue;  // nothing is gathered there
      std::unique_ptr<Profiled> training;
      if (worlds.first.contains(ranks)) {
        training = std::make_unique<Profiled>(*worlds.first[ranks],
                                              training_of(effort.model("gpt-mini"), ranks, stage));
        for (int round = 0; round < effort.rounds(15); ++round) {
          training->warm_up();
          training->run(steps);
        }
        for (Figure& figure :
             training->figures(fmt::format("{} rank(s), stage {}", ranks, stage))) {
          figures.push_back(std::move(figure));
        }
      }
      worlds.meet();
    }
  }
  return figures;
}

}  // namespace zerolab::bench
