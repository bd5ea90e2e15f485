#include "visualize/diagram/text.hpp"

#include <fmt/format.h>

#include <array>
#include <span>
#include <vector>

namespace zerolab::diagram {
namespace {

// The characters of a text in UTF-8, which is what JSON is made of. XML has no control characters.
std::vector<std::string_view> characters_of(std::string_view text) {
  std::vector<std::string_view> result;
  for (std::size_t i = 0; i < text.size();) {
    std::size_t end = i + 1;
    while (end < text.size() && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) ++end;
    const std::string_view each = text.substr(i, end - i);
    const auto code = static_cast<unsigned char>(each[0]);
    const bool no_xml = code < 0x20 || code == 0x7F || each == "\uFFFE" || each == "\uFFFF";
    result.push_back(no_xml ? "\uFFFD" : each);
    i = end;
  }
  return result;
}

std::string_view escaped(std::string_view character) {
  if (character == "<") return "&lt;";
  if (character == ">") return "&gt;";
  if (character == "&") return "&amp;";
  if (character == "\"") return "&quot;";
  if (character == "\\") return "&#92;";  // no escape of Graphviz
  return character;
}

// Three digits of the largest unit that is not above the value.
struct Unit {
  double size;
  std::string_view name;
};
std::string with_unit(double value, std::span<const Unit> units) {
  const Unit* best = units.data();
  for (const Unit& unit : units) {
    if (value >= unit.size) best = &unit;
  }
  const double scaled = value / best->size;
  const int digits = scaled < 9.995 ? 2 : scaled < 99.95 ? 1 : 0;
  return fmt::format("{:.{}f} {}", scaled, digits, best->name);
}

}  // namespace

std::string label_text(std::string_view text, std::size_t longest) {
  std::vector<std::string_view> characters = characters_of(text);
  if (characters.size() > longest) {  // both ends of a name tell most
    const std::size_t head = (longest - 1) / 2, tail = longest - 1 - head;
    characters.erase(characters.begin() + static_cast<std::ptrdiff_t>(head),
                     characters.end() - static_cast<std::ptrdiff_t>(tail));
    characters.insert(characters.begin() + static_cast<std::ptrdiff_t>(head), "\u2026");
  }
  std::string result;
  for (const std::string_view each : characters) result += escaped(each);
  return result;
}

std::string with_commas(log::Count number) {
  std::string digits = fmt::to_string(number);
  for (std::size_t i = digits.size(); i > 3; i -= 3) digits.insert(i - 3, ",");
  return digits;
}

std::string duration(double microseconds) {
  constexpr std::array kUnits{Unit{1, "\u00B5s"}, Unit{1e3, "ms"}, Unit{1e6, "s"}};
  return with_unit(microseconds, kUnits);
}

std::string size(log::Count bytes) {
  constexpr std::array kUnits{Unit{1024, "KiB"}, Unit{1048576, "MiB"}, Unit{1073741824, "GiB"}};
  if (bytes < 1024) return fmt::format("{} B", bytes);
  return with_unit(static_cast<double>(bytes), kUnits);
}

}  // namespace zerolab::diagram
