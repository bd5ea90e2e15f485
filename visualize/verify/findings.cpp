#include "visualize/verify/findings.hpp"

#include <fmt/format.h>

namespace zerolab::verify {

std::string in_quotes(std::string_view name) {
  constexpr std::size_t kLongest = 100;
  if (name.size() <= kLongest) return fmt::format("'{}'", name);
  return fmt::format("'{}...'", name.substr(0, kLongest));
}

void Reporter::operator()(Kind kind, Count line, std::string text) const {
  const auto [entry, first] = violations_.try_emplace(kind);
  if (first) {
    entry->second = {file_, line, std::move(text)};
  } else {
    ++entry->second.more;
  }
}

}  // namespace zerolab::verify
