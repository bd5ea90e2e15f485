#pragma once

#include <istream>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "visualize/log/event.hpp"

namespace zerolab::log {

/// The event that a line is. Throws Mistake.
Event read_event(std::string_view text, Count line);

/// A line of an event file: an event, or what is wrong with it.
struct Line {
  Count number = 0;
  std::optional<Event> event;
  std::string mistake = {};
};

/// Reads an event file line by line, and holds one line at a time.
class EventLines {
 public:
  /// `in` must outlive this.
  explicit EventLines(std::istream& in) : in_(in), buffer_(kLongest) {}

  /// The next line; nothing at the end.
  std::optional<Line> next();

  /// The line in the middle of which the file ends, as a crash leaves it; 0 if it does not.
  Count cut_in() const { return cut_in_; }

 private:
  static constexpr std::size_t kLongest = std::size_t{1} << 20;

  std::istream& in_;
  std::vector<char> buffer_;
  Count number_ = 0;
  Count cut_in_ = 0;
};

}  // namespace zerolab::log
