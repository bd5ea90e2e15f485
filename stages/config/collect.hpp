#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "stages/base/error.hpp"
#include "stages/config/keys.hpp"

namespace zerolab {

/// One mistake in what was given.
struct Problem {
  Code code;
  std::string text;  // names source and key, says why and what to do
};

/// A value that counts, under the key's own name.
struct Chosen {
  nlohmann::json value;
  Origin origin = Origin::default_value;
  std::string source;
  std::string spelled;  // the key as it was written, with its new name if that is deprecated
};

/// What was given, sorted out: for every key the value that wins, and everything that is wrong
/// with what was written. Values are of the right kind; foreign keys are still in.
struct Collected {
  std::map<std::string, Chosen, std::less<>> chosen;
  std::set<std::string, std::less<>> rejected;  // keys whose value was of no use
  std::vector<Problem> problems;
  std::vector<std::string> warnings;

  /// Whoever chose it; null if nobody did.
  const Chosen* given(std::string_view key) const;
  /// The choice of a person, in file or flag; null if there is none.
  const Chosen* asked_for(std::string_view key) const;
};

/// Throws Error (Code::config_syntax) if the file is no JSON.
Collected collect(const ResolveInput& input);

}  // namespace zerolab
