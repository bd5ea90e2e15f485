#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "visualize/log/event.hpp"

namespace zerolab::log {

/// A text that is not as the log has it: what is wrong, for people.
struct Mistake : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// A value as a message shows it: not too much of it, and on one line.
std::string shown(const nlohmann::json& value);

/// The fields of a JSON object, each of the type that it must have. All throw Mistake.
class Fields {
 public:
  /// `place` is where messages say that it stands, "parameters[2]"; empty for a whole line or file.
  /// The object must outlive this.
  explicit Fields(const nlohmann::json& object, std::string place = "");

  bool has(const char* name) const { return object_.contains(name); }
  /// Of one that is there.
  bool is_null(const char* name) const { return at(name).is_null(); }
  std::string text(const char* name) const;
  std::string name(const char* name) const;  // a text that is not empty
  /// From 0 to 2^53, beyond which JSON's numbers are not exact everywhere.
  Count count(const char* name) const;
  std::optional<Count> count_or_null(const char* name) const;
  double number(const char* name) const;
  std::optional<double> number_or_null(const char* name) const;
  bool flag(const char* name) const;
  std::vector<std::string> names(const char* name) const;
  template <typename Enum>
  Enum word(const char* name) const {
    if (const auto found = named<Enum>(text(name))) return *found;
    refuse(name, fmt::format("one of {}", fmt::join(kWords<Enum>, ", ")));
  }

  Fields object(const char* name) const;
  std::optional<Fields> object_if_any(const char* name) const;  // may be missing, or null
  std::vector<Fields> objects(const char* name) const;
  std::vector<std::string> keys() const;

 private:
  const nlohmann::json& at(const char* name) const;
  [[noreturn]] void refuse(const char* name, const std::string& expected) const;

  const nlohmann::json& object_;
  std::string place_;
};

}  // namespace zerolab::log
