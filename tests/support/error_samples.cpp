#include "tests/support/error_samples.hpp"

#include <regex>

#include "tests/support/documents.hpp"

namespace zerolab {
namespace {

constexpr const char* kSeeIt = "**See it**:";

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
    if (line == kSeeIt) inside = false;
    if (inside && line.rfind("    ", 0) == 0) sample += line + '\n';
  }
  return on_one_line(sample);
}

std::string see_it_of(Code code) {
  std::string commands;
  std::string section;
  bool inside = false;
  for (const std::string& line : lines_of_document("errors.md")) {
    if (line.rfind("## ", 0) == 0) section = line.substr(3, line.find(':') - 3);
    if (line == kSeeIt || line.rfind("**Way out**", 0) == 0) inside = line == kSeeIt;
    if (inside && section == code_name(code) && line.rfind("    ", 0) == 0) {
      commands += line.substr(4) + '\n';
    }
  }
  return commands;
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
