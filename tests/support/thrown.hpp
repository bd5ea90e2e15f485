#pragma once

#include <optional>
#include <string>

#include "stages/base/error.hpp"

namespace zerolab {

/// What `action` throws, so that a test can look at code and text; nothing if it returns.
template <typename Action>
std::optional<Error> thrown_by(Action&& action) {
  try {
    action();
  } catch (const Error& error) {
    return error;
  }
  return std::nullopt;
}

inline bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

}  // namespace zerolab
