#include "lab/error_guide.hpp"

#include <fmt/format.h>

#include <map>
#include <optional>
#include <sstream>

namespace zerolab {
namespace {

using Part = GuideBlock::Part;

constexpr std::string_view kIndent = "    ";
constexpr std::string_view kHeading = "## ZL";
constexpr std::string_view kSeeIt = "**See it**:";
constexpr std::string_view kWayOut = "**Way out**: ";

bool begins_with(std::string_view text, std::string_view begin) {
  return text.rfind(begin, 0) == 0;
}

// Bold and links become their text; code keeps its backticks, and whatever is between them.
std::string without_marks(std::string_view markdown) {
  std::string text;
  bool code = false;
  for (std::size_t i = 0; i < markdown.size(); ++i) {
    if (markdown[i] == '`') code = !code;
    const std::size_t middle = markdown.find("](", i);
    if (!code && begins_with(markdown.substr(i), "**")) {
      ++i;
    } else if (!code && markdown[i] == '[' && middle != std::string_view::npos) {
      text += markdown.substr(i + 1, middle - i - 1);
      i = markdown.find(')', middle);
    } else {
      text += markdown[i];
    }
  }
  return text;
}

// "| 3 | out of memory |", by its first cell.
std::optional<std::pair<std::string, std::string>> row(const std::string& line) {
  const std::size_t middle = line.find(" | ");
  const std::size_t end = line.rfind(" |");
  if (!begins_with(line, "| ") || middle == std::string::npos || end <= middle) return std::nullopt;
  return std::pair{line.substr(2, middle - 2), line.substr(middle + 3, end - middle - 3)};
}

// "## ZL301: a memory pool went over its budget"
ErrorSection headed(const std::string& line, const std::map<std::string, std::string>& statuses) {
  const std::size_t number = kHeading.size();
  const std::size_t colon = line.find(": ");
  ErrorSection section;
  section.code = "ZL" + line.substr(number, colon - number);
  section.title = line.substr(colon + 2);
  section.exit_status = std::stoi(line.substr(number)) / 100;
  const auto meaning = statuses.find(fmt::to_string(section.exit_status));
  section.exit_meaning = (meaning == statuses.end() ? statuses.at("128 + n") : meaning->second);
  return section;
}

// Adds one line of a section. `open` says whether it goes on with the last block.
void add_line(ErrorSection& section, std::string_view line, bool open) {
  std::vector<GuideBlock>& blocks = section.blocks;
  const Part last = blocks.empty() ? Part::text : blocks.back().part;
  if (begins_with(line, kSeeIt)) {
    blocks.push_back({Part::see_it, "", true});
  } else if (begins_with(line, kIndent)) {
    const bool first = section.part(Part::example).empty();
    const bool fills = last == Part::see_it || open;
    if (!fills) blocks.push_back({first ? Part::example : last, "", true});
    std::string& code = blocks.back().text;
    code += (code.empty() ? "" : "\n") + std::string(line.substr(kIndent.size()));
  } else if (begins_with(line, kWayOut)) {
    blocks.push_back({Part::way_out, std::string(line.substr(kWayOut.size()))});
  } else if (open) {
    blocks.back().text += " " + std::string(line);
  } else {
    blocks.push_back({last == Part::way_out ? last : Part::text, std::string(line)});
  }
}

}  // namespace

std::string ErrorSection::part(Part wanted) const {
  std::string text;
  for (const GuideBlock& block : blocks) {
    if (block.part == wanted) text += (text.empty() ? "" : "\n\n") + block.text;
  }
  return text;
}

std::vector<ErrorSection> error_sections(std::string_view page) {
  std::vector<ErrorSection> sections;
  std::map<std::string, std::string> statuses;
  std::istringstream lines{std::string(page)};
  bool open = false;
  for (std::string line; std::getline(lines, line);) {
    if (begins_with(line, kHeading)) {
      sections.push_back(headed(line, statuses));
    } else if (sections.empty()) {
      if (const auto cells = row(line)) statuses.insert(*cells);
    } else if (!line.empty()) {
      add_line(sections.back(), line, open);
    }
    open = !line.empty() && !begins_with(line, kHeading);
  }
  for (ErrorSection& section : sections) {
    for (GuideBlock& block : section.blocks) {
      if (!block.code) block.text = without_marks(block.text);
    }
  }
  return sections;
}

}  // namespace zerolab
