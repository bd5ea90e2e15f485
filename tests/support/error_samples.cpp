#include "tests/support/error_samples.hpp"

#include <regex>

#include "tests/support/documents.hpp"

namespace zerolab {
namespace {

std::string on_one_line(const std::string& text) {
  std::string line = std::regex_replace(text, std::regex(R"(\s+)"), " ");
  line.erase(0, line.find_first_not_of(' '));
  line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

std::string normalised(const std::string& text) {
  const std::string named = std::regex_replace(on_one_line(text), std::regex("'[^']*'"), "'name'");
  return std::regex_replace(named, std::regex(R"([0-9]+(\.[0-9]+)?(e[-+]?[0-9]+)?|\b(nan|inf)\b)"),
                            "#");
}

}  // namespace

std::string sample_of(Code code) {
  std::string sample;
  bool inside = false;
  for (const std::string& line : lines_of_document("errors.md")) {
    if (line.rfind("## ", 0) == 0) inside = line.rfind("## " + code_name(code) + ": ", 0) == 0;
    if (inside && line.rfind("    ", 0) == 0) sample += line + '\n';
  }
  return on_one_line(sample);
}

bool reads_like(const std::string& message, const std::string& sample) {
  std::string expected = normalised(sample);
  const std::string found = normalised(message);
  const std::size_t open_end = expected.rfind("...");
  if (open_end == std::string::npos) return found == expected;
  expected.erase(expected.find_last_not_of(" .") + 1);
  return found.rfind(expected, 0) == 0;
}

}  // namespace zerolab
