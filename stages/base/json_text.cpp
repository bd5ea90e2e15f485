#include "stages/base/json_text.hpp"

#include <fmt/format.h>

#include <cstdlib>

#include <algorithm>
#include <set>

#include "stages/base/error.hpp"

namespace zerolab {
namespace {

using Json = nlohmann::json;

// The library copies and writes nested values by recursion.
constexpr std::size_t kMostLevels = 100;

// Watches the parser go by and notes every key that its object already has.
class DuplicateWatch {
 public:
  struct TooDeep {};

  explicit DuplicateWatch(std::vector<std::string>& found) : found_(found) {}

  bool operator()(Json::parse_event_t event, const Json& parsed) {
    switch (event) {
      case Json::parse_event_t::object_start:
      case Json::parse_event_t::array_start:
        levels_.emplace_back();
        if (levels_.size() > kMostLevels) throw TooDeep();
        break;
      case Json::parse_event_t::object_end:
      case Json::parse_event_t::array_end:
        levels_.pop_back();
        break;
      case Json::parse_event_t::key:
        levels_.back().current = parsed.get<std::string>();
        if (!levels_.back().seen.insert(levels_.back().current).second) found_.push_back(path());
        break;
      case Json::parse_event_t::value:
        break;
    }
    return true;
  }

 private:
  struct Level {
    std::set<std::string> seen;
    std::string current;
  };

  std::string path() const {
    std::string joined;
    for (const Level& level : levels_) {
      if (!joined.empty()) joined += '.';
      joined += level.current;
    }
    return joined;
  }

  std::vector<std::string>& found_;
  std::vector<Level> levels_;
};

// "file:3:7: unexpected '}'", the line itself and a caret below the place.
std::string describe(const Json::parse_error& error, std::string_view text,
                     const std::string& name) {
  const std::size_t offset = std::min(error.byte > 0 ? error.byte - 1 : 0, text.size());
  const std::string_view before = text.substr(0, offset);
  const auto line = std::count(before.begin(), before.end(), '\n') + 1;
  const std::size_t newline = before.rfind('\n');
  const std::size_t begin = newline == std::string_view::npos ? 0 : newline + 1;
  const std::size_t column = offset - begin + 1;
  std::string source(text.substr(begin, text.find('\n', begin) - begin));
  std::replace(source.begin(), source.end(), '\t', ' ');

  std::string why = error.what();
  for (const std::string_view lead : {"column ", " - "}) {  // the library's own preamble
    if (const std::size_t at = why.find(lead); at != std::string::npos) {
      why.erase(0, at + (lead == " - " ? lead.size() : 0));
    }
  }
  // Versions of the library call this differently.
  if (text.find_first_not_of(" \t\r\n") == std::string_view::npos) {
    why = "unexpected end of input: there is no JSON in it";
  }
  const std::string number = std::to_string(line);
  return fmt::format("{}:{}:{}: {}\n  {} | {}\n  {:{}} | {:>{}}", name, line, column, why, number,
                     source, "", number.size(), "^", column);
}

}  // namespace

Json parse_json(std::string_view text, const std::string& name,
                std::vector<std::string>* duplicates) {
  std::vector<std::string> found;
  DuplicateWatch watch(found);
  const auto callback = [&watch](int, Json::parse_event_t event, Json& parsed) {
    return watch(event, parsed);
  };
  try {
    Json value = Json::parse(text, callback, true, true);
    if (duplicates != nullptr) *duplicates = std::move(found);
    return value;
  } catch (const DuplicateWatch::TooDeep&) {
    throw Error(Code::config_syntax,
                fmt::format("{}: more than {} levels inside of each other", name, kMostLevels),
                "write it with fewer");
  } catch (const Json::parse_error& error) {
    throw Error(Code::config_syntax, describe(error, text, name), "correct the JSON at this place");
  } catch (const Json::exception& error) {  // a number that no double can hold
    throw Error(Code::config_syntax, fmt::format("{}: {}", name, error.what()),
                "correct the JSON at this place");
  }
}

std::string_view type_name(const Json& value) {
  switch (value.type()) {
    case Json::value_t::null:
      return "null";
    case Json::value_t::boolean:
      return "true or false";
    case Json::value_t::string:
      return "a string";
    case Json::value_t::number_integer:
    case Json::value_t::number_unsigned:
      return "a whole number";
    case Json::value_t::number_float:
      return "a number";
    case Json::value_t::array:
      return "a list";
    case Json::value_t::object:
      return "an object";
    case Json::value_t::binary:
    case Json::value_t::discarded:
      break;
  }
  return "something else";
}

std::string bytes_as_text(std::string_view bytes) {
  std::string text;
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x80) {
      text.push_back(c);
    } else {
      text.push_back(static_cast<char>(0xC0 | byte >> 6));
      text.push_back(static_cast<char>(0x80 | (byte & 0x3F)));
    }
  }
  return text;
}

double as_written(float value) { return std::strtod(fmt::format("{}", value).c_str(), nullptr); }

}  // namespace zerolab
