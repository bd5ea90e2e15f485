#include "lab/train_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "lab/memory_bars.hpp"
#include "stages/engine/summary.hpp"

namespace zerolab {
namespace {

using Align = Table::Align;

constexpr std::size_t kStepsShown = 8;
constexpr std::size_t kCheckpointsShown = 3;

// Of a number from 0; a NaN has no sign.
std::string digits(double value, int count) {
  return fmt::format("{:.{}f}", std::abs(value), count);
}

// Some steps, evenly spaced, the first and the last among them.
std::set<std::size_t> chosen_steps(std::size_t count) {
  std::set<std::size_t> chosen;
  for (std::size_t i = 0; i < kStepsShown && count > 0; ++i) {
    chosen.insert(i * (count - 1) / (kStepsShown - 1));
  }
  return chosen;
}

// The learning rate and the loss scale have a column if they change.
std::string steps_table(const RankReport& report, Style style) {
  const bool scheduled =
      std::any_of(report.steps.begin(), report.steps.end(), [&report](const StepResult& step) {
        return step.learning_rate != report.steps.front().learning_rate;
      });
  Table table{{{"step"}, {"loss"}, {"gradient norm"}, {"parameter hash"}, {"time"}}, {}};
  const bool scaled = std::any_of(
      report.steps.begin(), report.steps.end(),
      [&report](const StepResult& step) { return step.scale != report.steps.front().scale; });
  if (scheduled) table.columns.insert(table.columns.begin() + 1, {"learning rate"});
  if (scaled) table.columns.insert(table.columns.begin() + 1, {"loss scale"});
  for (const std::size_t i : chosen_steps(report.steps.size())) {
    const StepResult& step = report.steps[i];
    std::vector<std::string> row{fmt::to_string(step.step), digits(step.loss, 6),
                                 digits(step.grad_norm, 6), hash_text(step.hash),
                                 human_seconds(step.seconds)};
    if (scheduled) row.insert(row.begin() + 1, fmt::format("{:.3g}", step.learning_rate));
    if (scaled) row.insert(row.begin() + 1, fmt::to_string(step.scale));
    table.rows.push_back(std::move(row));
  }
  return draw_table(table, style);
}

std::string memory_table(const MemoryUse& memory, Style style) {
  Table table{
      {{"device memory of rank 0", Align::left}, {"between steps"}, {"at the peak"}, {"at most"}},
      {}};
  const auto cell = [](Index bytes) { return bytes == 0 ? std::string("-") : human_bytes(bytes); };
  for (std::size_t c = 0; c < kCategories; ++c) {
    const auto category = static_cast<Category>(c);
    if (memory.category_peak[category] == 0) continue;
    table.rows.push_back({std::string(name_of(category)), cell(memory.steady[category]),
                          cell(memory.peak[category]), cell(memory.category_peak[category])});
  }
  table.rows.push_back(
      {"total", cell(memory.steady.total()), cell(memory.peak.total()), std::string()});
  return draw_table(table, style);
}

std::string traffic_table(const RankReport& report, Style style) {
  Table table{
      {{"collectives of rank 0, all steps", Align::left}, {"calls"}, {"elements"}, {"sent"}}, {}};
  for (const auto& [op, traffic] : report.comm.traffic) {
    table.rows.push_back({std::string(name_of(op)), fmt::to_string(traffic.calls),
                          fmt::to_string(traffic.elements), human_bytes(traffic.bytes_sent)});
  }
  return draw_table(table, style);
}

// How well communication was hidden, where there was any.
std::string hiding_text(const RankReport& report) {
  std::string text;
  const FetchCounts& fetches = report.fetches;
  if (fetches.hits + fetches.misses > 0) {
    text += fmt::format(" prefetch: {} hits, {} misses, {} unused\n", fetches.hits, fetches.misses,
                        fetches.unused);
  }
  const CommTotals& comm = report.comm;
  if (comm.busy_seconds > 0) {
    text += fmt::format(" in collectives {}, waited for {}\n", human_seconds(comm.busy_seconds),
                        human_seconds(comm.exposed_seconds));
  }
  return text;
}

// What 16 bits have cost.
std::string rounding_text(const RankReport& report) {
  std::string text;
  if (const Index skipped = skipped_steps(report); skipped > 0) {
    text += fmt::format(" {} of {} steps skipped{}\n", skipped, report.steps.size(),
                        skipped == static_cast<Index>(report.steps.size())
                            ? ": the weights are what they were"
                            : "");
  }
  RoundingLoss loss;
  for (const StepResult& step : report.steps) loss += step.rounding;
  if (loss.rounded == 0) return text;
  return text +
         fmt::format(" {:.3g}% of the gradient elements that were rounded to 16 bits became zero\n",
                     100 * loss.share());
}

// The latest, which are those that --keep leaves.
std::string checkpoints_table(const std::vector<CheckpointResult>& checkpoints, Style style) {
  if (checkpoints.empty()) return {};
  const std::size_t hidden = checkpoints.size() - std::min(checkpoints.size(), kCheckpointsShown);
  Table table{{{"saved", Align::left}, {"after step"}, {"size"}, {"training stood still"}}, {}};
  double seconds = 0;
  for (std::size_t i = 0; i < checkpoints.size(); ++i) {
    const CheckpointResult& each = checkpoints[i];
    seconds += each.seconds;
    if (i < hidden) continue;
    table.rows.push_back({each.path, fmt::to_string(each.step), human_bytes(each.bytes),
                          human_seconds(each.seconds)});
  }
  std::string text = "\n" + draw_table(table, style);
  if (hidden > 0) {
    text += fmt::format(" and {} before: training stood still for {} in all\n", hidden,
                        human_seconds(seconds));
  }
  return text;
}

}  // namespace

std::string train_table(const RankReport& report, const Training& training, int ranks,
                        Style style) {
  std::string text =
      steps_table(report, style) + "\n" + memory_table(report.memory[0], style) + "\n" +
      memory_bars({{fmt::format("stage {}", training.settings.zero.stage), report.memory[0].peak}},
                  style) +
      "\n" + traffic_table(report, style) + hiding_text(report) + "\n";
  for (const ValidationResult& result : report.validation) {
    text += fmt::format(" held-out loss after step {}: {} nats per byte\n", result.step,
                        digits(result.loss, 4));
  }
  text += rounding_text(report);
  text += fmt::format(" {:.0f} tokens/s\n", tokens_per_second(report, training, ranks));
  return text + checkpoints_table(report.checkpoints, style);
}

}  // namespace zerolab
