#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "stages/base/types.hpp"

namespace zerolab {

/// Box lines and block characters on a terminal; ASCII with --plain and into pipes.
enum class Style { unicode, ascii };
Style choose_style(bool plain, bool terminal);

/// Columns of text, aligned. A title may have two lines ("\n" between).
struct Table {
  enum class Align { left, right };
  struct Column {
    std::string title;
    Align align = Align::right;
  };
  std::vector<Column> columns;
  std::vector<std::vector<std::string>> rows;
  std::size_t gap = 2;  // spaces between columns
};
std::string draw_table(const Table& table, Style style);

/// How many columns of a terminal a UTF-8 text takes (one per code point).
std::size_t display_width(std::string_view text);

/// "170,560".
std::string thousands(Index value);

/// "820 us", "12.3 ms", "1.24 s".
std::string human_seconds(double seconds);

}  // namespace zerolab
