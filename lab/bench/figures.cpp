#include "lab/bench/figures.hpp"

#include <fmt/format.h>

#include <utility>

#include "lab/table.hpp"

namespace zerolab::bench {
namespace {

std::string as_ratio(double value) { return fmt::format("{:.2f}", value); }
std::string as_percent(double value) { return fmt::format("{:.1f}%", 100 * value); }

Figure figure(std::string what, const Spread& spread, const std::optional<Target>& target,
              std::string note, std::string (*text)(double)) {
  Figure result{.what = std::move(what),
                .value = text(spread.median),
                .spread = fmt::format("{} to {}", text(spread.low), text(spread.high)),
                .note = std::move(note)};
  if (target) {
    const bool at_most = target->kind == Target::Kind::at_most;
    const bool met = at_most ? spread.median <= target->value : spread.median >= target->value;
    result.target = fmt::format("at {} {}", at_most ? "most" : "least", text(target->value));
    result.met = met ? "yes" : "no";
  }
  return result;
}

}  // namespace

Figure ratio_figure(std::string what, const Spread& ratio, std::optional<Target> target,
                    std::string note) {
  return figure(std::move(what), ratio, target, std::move(note), as_ratio);
}

Figure percent_figure(std::string what, const Spread& share, std::optional<Target> target,
                      std::string note) {
  return figure(std::move(what), share, target, std::move(note), as_percent);
}

std::string draw_figures(const std::string& title, const std::vector<Figure>& figures) {
  using Align = Table::Align;
  Table table;
  table.columns = {{"what", Align::left},        {"figure"},
                   {"half of all", Align::left}, {"", Align::left},
                   {"target", Align::left},      {"met", Align::left}};
  for (const Figure& f : figures) {
    table.rows.push_back({f.what, f.value, f.spread, f.note, f.target, f.met});
  }
  return fmt::format("{}\n{}\n", title, draw_table(table, Style::ascii));
}

}  // namespace zerolab::bench
