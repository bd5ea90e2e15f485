#pragma once

#include <string>
#include <string_view>

#include "visualize/log/event.hpp"

namespace zerolab::diagram {

/// How many characters of a name a picture shows.
inline constexpr std::size_t kLongestName = 40;

/// A text from a log as a label of Graphviz shows it, whatever is in it: escaped for HTML, without
/// control characters, and cut in the middle if it is longer than `longest` characters.
std::string label_text(std::string_view text, std::size_t longest = kLongestName);

/// "12,345"
std::string with_commas(log::Count number);

/// Of microseconds, with three digits: "0.52 us", "31.4 us", "1.20 ms", "3.50 s".
std::string duration(double microseconds);

/// Of bytes: "512 B", "1.50 KiB".
std::string size(log::Count bytes);

}  // namespace zerolab::diagram
