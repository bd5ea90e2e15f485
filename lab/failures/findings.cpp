#include "lab/failures/findings.hpp"

#include <fmt/format.h>
#include <muParser.h>

#include <cctype>
#include <cmath>
#include <deque>
#include <limits>
#include <vector>

#include "stages/base/error.hpp"

namespace zerolab {
namespace {

using Json = nlohmann::json;

[[noreturn]] void refuse(const std::string& expression, const std::string& why) {
  throw Error(Code::clinic_page, fmt::format("the expression '{}': {}", expression, why),
              "lab/failures/README.md says what an expression may name");
}

/// The advice of an out-of-memory report about this setting, whose name has points of its own.
const Json* advice_about(const Json& known, const std::string& setting) {
  const Json::json_pointer advice("/advised/error/details/advice");
  if (!known.contains(advice)) return nullptr;
  for (const Json& each : known.at(advice)) {
    if (each.value("setting", "") == setting) return &each.at("fits");
  }
  return nullptr;
}

/// "broken.summary.steps[last].loss" in what is known; null if there is no such thing.
const Json* find(const Json& known, const std::string& name) {
  constexpr std::string_view kAdvice = "advice.";
  if (name.rfind(kAdvice, 0) == 0) return advice_about(known, name.substr(kAdvice.size()));
  const Json* at = &known;
  std::string part;
  const auto descend = [&] {
    if (part.empty()) return true;
    if (at->is_array()) {
      const std::size_t last = at->empty() ? 0 : at->size() - 1;
      const bool number =
          part.size() < 10 && part.find_first_not_of("0123456789") == std::string::npos;
      if ((part != "last" && !number) || at->empty()) return false;
      const std::size_t index = part == "last" ? last : std::stoul(part);
      if (index >= at->size()) return false;
      at = &at->at(index);
    } else {
      if (!at->is_object() || !at->contains(part)) return false;
      at = &at->at(part);
    }
    part.clear();
    return true;
  };
  for (const char c : name) {
    if (c != '.' && c != '[' && c != ']') {
      part += c;
    } else if (!descend()) {
      return nullptr;
    }
  }
  return descend() ? at : nullptr;
}

std::string shown(const Json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

/// One expression, and the values that it asked for.
class Expression {
 public:
  Expression(const Json& known, const std::string& text) : known_(known), text_(text) {
    parser_.DefineNameChars("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.[]");
    parser_.SetVarFactory(
        [](const char* name, void* self) { return static_cast<Expression*>(self)->ask(name); },
        this);
  }

  double value() {
    try {
      parser_.SetExpr(text_);
      return parser_.Eval();
    } catch (const mu::Parser::exception_type& error) {
      refuse(text_, error.GetMsg());
    }
  }

  const std::vector<std::string>& asked() const { return asked_; }

 private:
  double* ask(const std::string& name) {
    const Json* found = find(known_, name);
    if (found == nullptr) refuse(text_, fmt::format("there is no {}", name));
    asked_.push_back(fmt::format("{} = {}", name, shown(*found)));
    return &values_.emplace_back(number(*found));
  }

  double number(const Json& value) {
    if (value.is_number()) return value.get<double>();
    if (value.is_boolean()) return value.get<bool>() ? 1 : 0;
    if (value.is_array()) return static_cast<double>(value.size());
    if (value.is_null()) return std::numeric_limits<double>::quiet_NaN();
    // Equal texts get equal numbers, others other ones.
    return static_cast<double>(texts_.emplace(value.dump(), texts_.size()).first->second);
  }

  const Json& known_;
  std::string text_;
  mu::Parser parser_;
  std::deque<double> values_;  // the parser keeps their addresses
  std::map<std::string, std::size_t> texts_;
  std::vector<std::string> asked_;
};

}  // namespace

double Findings::value_of(const std::string& expression) const {
  return Expression(known_, expression).value();
}

std::string Findings::values_in(const std::string& expression) const {
  Expression asking(known_, expression);
  asking.value();
  std::string text;
  for (const std::string& each : asking.asked()) text += (text.empty() ? "" : ", ") + each;
  return text;
}

std::string Findings::filled_in(const std::string& text) const {
  std::string result;
  std::size_t at = 0;
  while (true) {
    const std::size_t open = text.find('{', at);
    const std::size_t close = text.find('}', open);
    result += text.substr(at, open - at);
    if (open == std::string::npos) return result;
    if (close == std::string::npos) refuse(text, "a brace is not closed");
    const double value = value_of(text.substr(open + 1, close - open - 1));
    const bool whole = std::floor(value) == value && std::abs(value) < 1e15;
    result += whole ? fmt::format("{}", static_cast<long long>(value)) : fmt::format("{}", value);
    at = close + 1;
  }
}

}  // namespace zerolab
