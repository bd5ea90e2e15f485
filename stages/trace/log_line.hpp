#pragma once

#include <fmt/format.h>

#include <array>
#include <concepts>
#include <string>
#include <string_view>

#include "stages/base/types.hpp"

namespace zerolab {

/// A time in microseconds, written with one digit behind the point.
struct Microseconds {
  double value = 0;
};

/// The name of a field as it stands in a line, put together by the compiler: ,"phase":
class FieldName {
 public:
  template <std::size_t kLength>
  consteval FieldName(const char (&name)[kLength])  // NOLINT(google-explicit-constructor)
      : size_(kLength + 3) {
    static_assert(kLength + 3 <= kCapacity);
    text_[0] = ',';
    text_[1] = '"';
    for (std::size_t i = 0; i + 1 < kLength; ++i) text_[i + 2] = name[i];
    text_[kLength + 1] = '"';
    text_[kLength + 2] = ':';
  }

  std::string_view text() const { return {text_.data(), size_}; }

 private:
  static constexpr std::size_t kCapacity = 24;
  std::array<char, kCapacity> text_{};
  std::size_t size_;
};

/// Writes one JSON object, field by field, at the end of `out`. A step of a small model has a
/// thousand events, so this appends instead of interpreting format strings: half of the time.
class LogLine {
 public:
  explicit LogLine(std::string& out) : out_(out) {}

  LogLine& field(const FieldName& key, std::string_view text) {
    begin(key);
    append_quoted(text);
    return *this;
  }
  template <std::integral T>
  LogLine& field(const FieldName& key, T value) {
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
  LogLine& field(const FieldName& key, double value);
  LogLine& field(const FieldName& key, Microseconds time);
  /// Fields that were put together before, with a comma in front of each.
  LogLine& fields(std::string_view ready) {
    append(ready);
    return *this;
  }
  void end() { append("}\n"); }

 private:
  void begin(const FieldName& key) {
    if (first_) {
      append("{");
      append(key.text().substr(1));
      first_ = false;
    } else {
      append(key.text());
    }
  }
  void append(std::string_view text) { out_.append(text); }
  void append_quoted(std::string_view text);

  std::string& out_;
  bool first_ = true;
};

}  // namespace zerolab
