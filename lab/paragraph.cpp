#include "lab/paragraph.hpp"

#include <sstream>

#include "lab/table.hpp"

namespace zerolab {

std::vector<std::string> wrapped_lines(std::string_view text, std::size_t width) {
  std::vector<std::string> lines;
  std::istringstream words{std::string(text)};
  for (std::string word; words >> word;) {
    const bool fits =
        !lines.empty() && display_width(lines.back()) + 1 + display_width(word) <= width;
    if (fits) {
      lines.back() += ' ' + word;
    } else {
      lines.push_back(word);
    }
  }
  return lines;
}

std::string wrapped(std::string_view text, std::size_t width, std::size_t indent) {
  const std::string margin(indent, ' ');
  std::string result, paragraph;
  const auto finish_paragraph = [&] {
    for (const std::string& line : wrapped_lines(paragraph, width - indent)) {
      result += margin + line + '\n';
    }
    paragraph.clear();
  };
  std::istringstream lines{std::string(text)};
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind("    ", 0) == 0) {
      finish_paragraph();
      result += margin + line + '\n';
    } else if (line.find_first_not_of(' ') == std::string::npos) {
      finish_paragraph();
      result += '\n';
    } else {
      paragraph += line + ' ';
    }
  }
  finish_paragraph();
  return result;
}

}  // namespace zerolab
