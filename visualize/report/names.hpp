#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace zerolab::report {

/// The names in a page, each once: events refer to them by number.
class Names {
 public:
  std::size_t operator[](const std::string& name);
  /// Shortened: a page has no use for 10 kB of a name.
  const std::vector<std::string>& shown() const { return shown_; }

 private:
  std::unordered_map<std::string, std::size_t> numbers_;
  std::vector<std::string> shown_;
};

/// At most this many bytes of a text, cut between characters.
std::string shortened(std::string_view text, std::size_t most = 120);

}  // namespace zerolab::report
