#include "visualize/report/names.hpp"

namespace zerolab::report {
namespace {

constexpr const char* kEllipsis = "\u2026";

/// Whether a byte of UTF-8 goes on with a character that began before it.
bool continues(char byte) { return (static_cast<unsigned char>(byte) & 0xC0U) == 0x80U; }

}  // namespace

std::size_t Names::operator[](const std::string& name) {
  const auto [place, added] = numbers_.try_emplace(name, shown_.size());
  if (added) shown_.push_back(shortened(name));
  return place->second;
}

std::string shortened(std::string_view text, std::size_t most) {
  if (text.size() <= most) return std::string(text);
  while (most > 0 && continues(text[most])) --most;
  return std::string(text.substr(0, most)) + kEllipsis;
}

}  // namespace zerolab::report
