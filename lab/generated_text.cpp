#include "lab/generated_text.hpp"

#include <fmt/format.h>

namespace zerolab {
namespace {

constexpr std::size_t kAligned = 40;  // columns; behind a longer prompt its text begins on the left

std::uint32_t byte_at(std::string_view bytes, std::size_t at) {
  return at < bytes.size() ? static_cast<unsigned char>(bytes[at]) : 0;
}

/// Bytes of the character that `bytes` begins with, if it is one that may be printed, or 0.
std::size_t printable_length(std::string_view bytes) {
  const std::uint32_t first = byte_at(bytes, 0);
  if (first < 0x80) return first == '\n' || (first >= ' ' && first != 0x7F) ? 1 : 0;
  const std::size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  std::uint32_t character = first & (0xFFU >> (length + 1));
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte_at(bytes, i) & 0xC0) != 0x80) return 0;
    character = character << 6 | (byte_at(bytes, i) & 0x3F);
  }
  // Less could be written shorter; U+0080 to U+009F are control characters.
  const std::uint32_t least = length == 4 ? 0x10000 : length == 3 ? 0x800 : 0xA0;
  const bool surrogate = character >= 0xD800 && character < 0xE000;
  const bool exists = first >= 0xC0 && first < 0xF8 && character >= least && character < 0x110000;
  return exists && !surrogate ? length : 0;
}

std::string heading(Index step, const Sampling& sampling) {
  std::string text = fmt::format(" after step {}: {} byte{}", step, sampling.count,
                                 sampling.count == 1 ? "" : "s");
  if (sampling.temperature == 0) return text + ", the most likely byte every time";
  text += fmt::format(", temperature {}", sampling.temperature);
  if (sampling.top_k > 0) text += fmt::format(", top-k {}", sampling.top_k);
  return text + fmt::format(", seed {}", sampling.seed);
}

std::string repeated(std::string_view mark, std::size_t times) {
  std::string text;
  for (std::size_t i = 0; i < times; ++i) text += mark;
  return text;
}

std::string with_mark(std::string_view mark, const std::string& text) {
  std::string lines = fmt::format(" {} ", mark);
  for (const char c : text) {
    lines += c;
    if (c == '\n') lines += fmt::format(" {} ", mark);
  }
  return lines;
}

}  // namespace

std::string printable(std::string_view bytes) {
  std::string text;
  while (!bytes.empty()) {
    const std::size_t length = printable_length(bytes);
    text += length > 0 ? std::string(bytes.substr(0, length))
                       : fmt::format("\\x{:02x}", byte_at(bytes, 0));
    bytes.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return text;
}

std::string generated_text(const Generation& generation, const Sampling& sampling, Style style) {
  const bool unicode = style == Style::unicode;
  const std::string title = heading(generation.step, sampling);
  std::string block = title + '\n' + repeated(unicode ? "─" : "-", title.size() + 1) + '\n';

  std::string prompt = printable(sampling.prompt);
  const std::size_t last_line = display_width(prompt.substr(prompt.rfind('\n') + 1));
  if (!prompt.empty() && prompt.back() == '\n') prompt.pop_back();
  if (!sampling.prompt.empty()) block += with_mark(unicode ? "▸" : ">", prompt) + '\n';

  const std::string indent(last_line <= kAligned ? last_line : 0, ' ');
  return block + with_mark(unicode ? "│" : "|", indent + printable(generation.text)) + '\n';
}

}  // namespace zerolab
