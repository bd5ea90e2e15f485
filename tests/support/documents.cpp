#include "tests/support/documents.hpp"

#include <algorithm>
#include <sstream>
#include <stdexcept>

#include "stages/base/read_file.hpp"

namespace zerolab {
namespace {

std::string trimmed(const std::string& text) {
  const std::size_t begin = text.find_first_not_of(' ');
  if (begin == std::string::npos) return "";
  return text.substr(begin, text.find_last_not_of(' ') - begin + 1);
}

// "| a | b |" -> a, b
std::vector<std::string> cells_of(const std::string& line) {
  std::vector<std::string> cells;
  std::istringstream in(line.substr(1, line.rfind('|') - 1));
  for (std::string cell; std::getline(in, cell, '|');) cells.push_back(trimmed(cell));
  return cells;
}

}  // namespace

std::filesystem::path repository() { return std::filesystem::path(ZEROLAB_TESTS).parent_path(); }

std::string document(const std::string& name) {
  const auto text = read_file(repository() / "docs" / name);
  if (!text) throw std::runtime_error("cannot read docs/" + name);
  return *text;
}

std::vector<std::string> lines_of_document(const std::string& name) {
  std::vector<std::string> lines;
  std::istringstream in(document(name));
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

std::vector<DocumentedRow> documented_rows(const std::string& name) {
  std::vector<DocumentedRow> rows;
  std::string heading;
  bool titles = true;  // until the line of dashes
  for (const std::string& line : lines_of_document(name)) {
    if (line.rfind("#", 0) == 0) heading = line.substr(line.find_first_not_of("# "));
    if (line.rfind("| ---", 0) == 0) {
      titles = false;
    } else if (line.rfind("|", 0) != 0) {
      titles = true;
    } else if (!titles) {
      rows.push_back({heading, cells_of(line)});
    }
  }
  return rows;
}

std::vector<std::string> in_backticks(const std::string& cell) {
  std::vector<std::string> found;
  std::size_t begin = cell.find('`');
  while (begin != std::string::npos) {
    const std::size_t end = cell.find('`', begin + 1);
    found.push_back(cell.substr(begin + 1, end - begin - 1));
    begin = end == std::string::npos ? end : cell.find('`', end + 1);
  }
  return found;
}

std::string without_backticks(std::string cell) {
  cell.erase(std::remove(cell.begin(), cell.end(), '`'), cell.end());
  return cell;
}

}  // namespace zerolab
