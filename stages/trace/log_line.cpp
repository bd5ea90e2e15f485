#include "stages/trace/log_line.hpp"

#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

namespace zerolab {
namespace {

// Names come from users (model descriptions), so they may need escapes; nearly none does. No early
// way out of the loop: whole, it is vectorised.
bool is_plain(std::string_view text) {
  bool special = false;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    special |= (byte < 0x20) | (byte >= 0x80) | (byte == '"') | (byte == '\\');
  }
  return !special;
}

}  // namespace

void LogLine::append_quoted(std::string_view text) {
  if (is_plain(text)) {
    append("\"");
    append(text);
    append("\"");
  } else {
    append(nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  }
}

LogLine& LogLine::field(const FieldName& key, double value) {
  begin(key);
  if (std::isfinite(value)) {
    append(fmt::format("{}", value));
  } else {
    append("null");
  }
  return *this;
}

LogLine& LogLine::field(const FieldName& key, Microseconds time) {
  begin(key);
  const long long tenths = std::llround(time.value * 10);
  if (tenths < 0) append("-");
  const fmt::format_int whole(std::llabs(tenths) / 10);
  append({whole.data(), whole.size()});
  const std::array<char, 2> fraction{'.', static_cast<char>('0' + std::llabs(tenths) % 10)};
  append({fraction.data(), fraction.size()});
  return *this;
}

}  // namespace zerolab
