#include "visualize/log/fields.hpp"

#include <utility>

namespace zerolab::log {
namespace {

constexpr std::size_t kShown = 40;
constexpr Count kLargest = Count{1} << 53;

std::optional<Count> as_count(const nlohmann::json& value) {
  if (!value.is_number_unsigned() || value.get<Count>() > kLargest) return std::nullopt;
  return value.get<Count>();
}

}  // namespace

std::string shown(const nlohmann::json& value) {
  std::string text = value.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
  if (text.size() > kShown) text = text.substr(0, kShown) + "...";
  return text;
}

Fields::Fields(const nlohmann::json& object, std::string place)
    : object_(object), place_(std::move(place)) {
  if (object_.is_object()) return;
  throw Mistake(fmt::format("{}is {}; an object is expected", place_.empty() ? "it " : place_ + " ",
                            shown(object_)));
}

const nlohmann::json& Fields::at(const char* name) const {
  const auto found = object_.find(name);
  if (found == object_.end()) {
    throw Mistake(
        fmt::format("has no '{}'{}", name, place_.empty() ? "" : fmt::format(" in {}", place_)));
  }
  return *found;
}

void Fields::refuse(const char* name, const std::string& expected) const {
  throw Mistake(fmt::format("{}{} is {}; {} is expected", place_.empty() ? "" : place_ + ".", name,
                            shown(at(name)), expected));
}

std::string Fields::text(const char* name) const {
  const nlohmann::json& value = at(name);
  if (!value.is_string()) refuse(name, "a text");
  return value.get<std::string>();
}

std::string Fields::name(const char* name) const {
  std::string value = text(name);
  if (value.empty()) refuse(name, "a name");
  return value;
}

Count Fields::count(const char* name) const {
  if (const auto value = as_count(at(name))) return *value;
  refuse(name, "a whole number from 0 to 2^53");
}

std::optional<Count> Fields::count_or_null(const char* name) const {
  if (at(name).is_null()) return std::nullopt;
  return count(name);
}

double Fields::number(const char* name) const {
  const nlohmann::json& value = at(name);
  if (!value.is_number()) refuse(name, "a number");
  return value.get<double>();
}

std::optional<double> Fields::number_or_null(const char* name) const {
  if (at(name).is_null()) return std::nullopt;
  return number(name);
}

bool Fields::flag(const char* name) const {
  const nlohmann::json& value = at(name);
  if (!value.is_boolean()) refuse(name, "true or false");
  return value.get<bool>();
}

std::vector<std::string> Fields::names(const char* name) const {
  std::vector<std::string> result;
  if (!at(name).is_array()) refuse(name, "a list");
  for (const nlohmann::json& each : at(name)) {
    if (!each.is_string()) refuse(name, "a list of names");
    result.push_back(each.get<std::string>());
  }
  return result;
}

Fields Fields::object(const char* name) const {
  return Fields(at(name), place_.empty() ? name : fmt::format("{}.{}", place_, name));
}

std::optional<Fields> Fields::object_if_any(const char* name) const {
  if (!has(name) || at(name).is_null()) return std::nullopt;
  return object(name);
}

std::vector<Fields> Fields::objects(const char* name) const {
  const nlohmann::json& list = at(name);
  if (!list.is_array()) refuse(name, "a list");
  std::vector<Fields> result;
  for (std::size_t i = 0; i < list.size(); ++i) {
    result.emplace_back(list[i],
                        fmt::format("{}{}[{}]", place_.empty() ? "" : place_ + ".", name, i));
  }
  return result;
}

std::vector<std::string> Fields::keys() const {
  std::vector<std::string> result;
  for (const auto& [key, value] : object_.items()) result.push_back(key);
  return result;
}

}  // namespace zerolab::log
