#include "lab/compare_table.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "lab/memory_bars.hpp"

namespace zerolab {
namespace {

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// What belongs to training; norm, loss, hash and checks travel under `control`.
Index sent_per_step(const StageResult& stage) {
  Index sum = 0;
  for (const auto& [op, traffic] : stage.traffic) {
    if (op != Op::control) sum += traffic.bytes_sent;
  }
  return stage.loss.empty() ? 0 : sum / static_cast<Index>(stage.loss.size());
}

std::string first_and_last(const std::vector<double>& loss, Style style) {
  if (loss.empty()) return "";
  const auto digits = [](double value) { return value < 10 ? 4 : 3; };
  return fmt::format("{:.{}f} {} {:.{}f}", loss.front(), digits(loss.front()),
                     style == Style::unicode ? "→" : "->", loss.back(), digits(loss.back()));
}

std::vector<std::string> row(const StageResult& stage, Style style) {
  const auto bytes = [&](Category category) {
    const Index held = stage.category_peak[category];
    return held == 0 ? std::string("-") : human_bytes(held);
  };
  return {fmt::to_string(stage.stage),
          first_and_last(stage.loss, style),
          bytes(Category::parameters),
          bytes(Category::gradients),
          bytes(Category::optimizer),
          bytes(Category::activations),
          bytes(Category::gather_buffers),
          bytes(Category::reduce_buffers),
          human_bytes(stage.peak.total()),
          human_bytes(sent_per_step(stage)),
          human_seconds(median(stage.step_seconds))};
}

std::vector<MemoryBar> bars(const CompareResult& result) {
  std::vector<MemoryBar> bars;
  for (const StageResult& stage : result.stages) {
    bars.push_back({fmt::format("stage {}", stage.stage), stage.peak});
  }
  return bars;
}

std::string validation_line(const CompareResult& result) {
  const StageResult& first = result.stages.front();
  if (first.validation_loss.empty()) return "";
  return fmt::format(" held-out loss after step {}: {:.4f} nats per byte\n", first.loss.size(),
                     first.validation_loss.back());
}

std::string verdict_line(const CompareResult& result) {
  const Verdict verdict = judge(result);
  if (result.stages.size() < 2) return "";
  const std::size_t steps = result.stages.front().loss.size();
  if (verdict.bit_identical) {
    return fmt::format(
        " bit-identical: yes (loss, gradient norm, parameter hash at all {} steps)\n", steps);
  }
  const std::string_view promise =
      verdict.promised ? ""
                       : ", nor promised: with gradient accumulation the order of addition differs";
  return fmt::format(
      " bit-identical: no{}\n   first at {}\n   losses differ by at most {:.3g} ulp of fp32\n",
      promise, verdict.first_difference, verdict.max_ulp);
}

}  // namespace

std::string compare_table(const CompareResult& result, Style style) {
  using Align = Table::Align;
  const std::string arrow = style == Style::unicode ? "→" : "->";
  Table table;
  table.gap = 1;
  table.columns = {
      {"stage", Align::right},           {"loss\nfirst " + arrow + " last", Align::left},
      {"parameters", Align::right},      {"gradients", Align::right},
      {"optimizer", Align::right},       {"activations", Align::right},
      {"gather\nbuffers", Align::right}, {"reduce\nbuffers", Align::right},
      {"\npeak", Align::right},          {"sent\nper step", Align::right},
      {"step\ntime", Align::right}};
  for (const StageResult& stage : result.stages) table.rows.push_back(row(stage, style));
  const std::string title = fmt::format(
      " {}, {} parameters, {} rank{}, {}; memory of rank 0, each column at its own peak",
      result.model, thousands(result.parameters), result.world_size,
      result.world_size == 1 ? "" : "s", result.transport);
  return fmt::format("\n{}\n\n{}\n{}\n{}{}", title, draw_table(table, style),
                     memory_bars(bars(result), style), validation_line(result),
                     verdict_line(result));
}

}  // namespace zerolab
