#include "lab/table.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace zerolab {
namespace {

std::string padded(std::string_view text, std::size_t width, Table::Align align) {
  const std::string space(width - display_width(text), ' ');
  return align == Table::Align::left ? std::string(text) + space : space + std::string(text);
}

// The k-th of `lines` lines of a title; short titles stand at the bottom.
std::string title_line(const std::string& title, std::size_t k, std::size_t lines) {
  const std::size_t split = title.find('\n');
  if (split == std::string::npos) return k + 1 == lines ? title : "";
  return k == 0 ? title.substr(0, split) : title.substr(split + 1);
}

std::string joined(const std::vector<std::string>& cells, std::size_t gap) {
  std::string line = fmt::format(" {}", fmt::join(cells, std::string(gap, ' ')));
  line.erase(line.find_last_not_of(' ') + 1);
  return line + '\n';
}

}  // namespace

Style choose_style(bool plain, bool terminal) {
  return plain || !terminal ? Style::ascii : Style::unicode;
}

std::size_t display_width(std::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

std::string draw_table(const Table& table, Style style) {
  std::size_t title_lines = 1;
  std::vector<std::size_t> widths;
  for (std::size_t c = 0; c < table.columns.size(); ++c) {
    const std::string& title = table.columns[c].title;
    if (title.find('\n') != std::string::npos) title_lines = 2;
    std::size_t width =
        std::max(display_width(title_line(title, 0, 2)), display_width(title_line(title, 1, 2)));
    for (const auto& row : table.rows) width = std::max(width, display_width(row[c]));
    widths.push_back(width);
  }
  std::string text;
  std::vector<std::string> cells(table.columns.size());
  for (std::size_t k = 0; k < title_lines; ++k) {
    for (std::size_t c = 0; c < cells.size(); ++c) {
      cells[c] = padded(title_line(table.columns[c].title, k, title_lines), widths[c],
                        table.columns[c].align);
    }
    text += joined(cells, table.gap);
  }
  std::size_t whole = 1 + table.gap * (cells.size() - 1);
  for (const std::size_t width : widths) whole += width;
  for (std::size_t i = 0; i < whole; ++i) text += style == Style::unicode ? "─" : "-";
  text += '\n';
  for (const auto& row : table.rows) {
    for (std::size_t c = 0; c < cells.size(); ++c) {
      cells[c] = padded(row[c], widths[c], table.columns[c].align);
    }
    text += joined(cells, table.gap);
  }
  return text;
}

std::string thousands(Index value) {
  std::string text = fmt::to_string(value);
  for (auto at = static_cast<Index>(text.size()) - 3; at > 0; at -= 3) {
    text.insert(static_cast<std::size_t>(at), ",");
  }
  return text;
}

std::string human_seconds(double seconds) {
  if (seconds < 1e-3) return fmt::format("{:.0f} us", seconds * 1e6);
  if (seconds < 1) return fmt::format("{:.{}f} ms", seconds * 1e3, seconds < 0.1 ? 1 : 0);
  return fmt::format("{:.{}f} s", seconds, seconds < 10 ? 2 : 1);
}

}  // namespace zerolab
