#include "lab/wrap.hpp"

#include <algorithm>

#include "lab/table.hpp"

namespace zerolab {

std::string wrapped(std::string_view line, std::size_t columns, std::string_view indent) {
  const std::size_t begin = std::min(line.find_first_not_of(' '), line.size());
  std::string text(line.substr(0, begin));
  std::size_t width = begin;
  bool alone = true;  // no word yet on this line
  for (std::size_t at = begin; at < line.size();) {
    const std::size_t end = std::min(line.find(' ', at), line.size());
    const std::string_view word = line.substr(at, end - at);
    const std::size_t more = display_width(word) + (alone ? 0 : 1);
    if (!alone && width + more > columns) {
      text.append("\n").append(indent).append(word);
      width = indent.size() + display_width(word);
    } else {
      text.append(alone ? "" : " ").append(word);
      width += more;
    }
    alone = false;
    at = end + 1;
  }
  return text;
}

}  // namespace zerolab
