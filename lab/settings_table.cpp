#include "lab/settings_table.hpp"

#include <fmt/format.h>

namespace zerolab {

std::string settings_table(const std::vector<SettingRow>& rows, Style style) {
  using Align = Table::Align;
  Table table;
  table.columns = {
      {"setting", Align::left}, {"value", Align::right}, {"from", Align::left}, {"", Align::left}};
  for (const SettingRow& row : rows) {
    // Half a screen about nothing: run.json has it.
    if (!row.active && row.key.rfind("scheduler.params.", 0) == 0) continue;
    table.rows.push_back({row.key, row.value,
                          row.source.empty() ? std::string(name_of(row.origin)) : row.source,
                          row.active ? row.reason : fmt::format("ignored: {}", row.reason)});
  }
  return draw_table(table, style);
}

}  // namespace zerolab
