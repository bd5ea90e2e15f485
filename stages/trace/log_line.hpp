#pragma once

#include <fmt/format.h>

#include <concepts>
#include <string_view>

#include "stages/base/types.hpp"
#include "stages/trace/log_text.hpp"

namespace zerolab {

/// A time in microseconds, written with one digit behind the point.
struct Microseconds {
  double value = 0;
};

/// Writes one JSON object, field by field, at the end of `out`. A step of a small model has a
/// thousand events, so this appends instead of interpreting format strings: half of the time.
class LogLine {
 public:
  explicit LogLine(LogText& out) : out_(out) {}

  LogLine& field(std::string_view key, std::string_view text) {
    begin(key);
    append_quoted(text);
    return *this;
  }
  template <std::integral T>
  LogLine& field(std::string_view key, T value) {
    begin(key);
    if constexpr (std::same_as<T, bool>) {
      append(value ? "true" : "false");
    } else {
      const fmt::format_int text(value);
      append({text.data(), text.size()});
    }
    return *this;
  }
  /// The shortest digits that read back as the same number; null if it is not finite.
  LogLine& field(std::string_view key, double value);
  LogLine& field(std::string_view key, Microseconds time);
  void end() { append("}\n"); }

 private:
  void begin(std::string_view key) {
    append(first_ ? "{\"" : ",\"");
    first_ = false;
    append(key);
    append("\":");
  }
  void append(std::string_view text) { out_.append(text); }
  void append_quoted(std::string_view text);

  LogText& out_;
  bool first_ = true;
};

}  // namespace zerolab
