#pragma once

#include <map>
#include <string>
#include <string_view>

#include "visualize/log/event.hpp"
#include "visualize/verify/kinds.hpp"

namespace zerolab::verify {

using log::Count;

/// The first violation of a kind, and how many more there were.
struct Violation {
  std::string file;  // "rank1.events.jsonl", "summary.json"
  Count line = 0;    // 0: the whole file
  std::string text;  // for people
  Count more = 0;
};
using Violations = std::map<Kind, Violation>;

/// A name in quotes, cut if it is very long.
std::string in_quotes(std::string_view name);

/// Violations in one file, added to those of the run.
class Reporter {
 public:
  Reporter(Violations& violations, std::string file)
      : violations_(violations), file_(std::move(file)) {}

  void operator()(Kind kind, Count line, std::string text) const;

 private:
  Violations& violations_;
  std::string file_;
};

}  // namespace zerolab::verify
