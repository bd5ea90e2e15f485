#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace zerolab {

/// Where the sources are.
std::filesystem::path repository();

/// The text of a file in docs/.
std::string document(const std::string& name);
std::vector<std::string> lines_of_document(const std::string& name);

/// A row of a guide's table, without its titles: the heading it stands under, and what is in its
/// cells, without blanks around it.
struct DocumentedRow {
  std::string heading;
  std::vector<std::string> cells;
};
std::vector<DocumentedRow> documented_rows(const std::string& name);

/// What stands between backticks, in order: "`-n N`, `--ranks N`" gives "-n N" and "--ranks N".
std::vector<std::string> in_backticks(const std::string& cell);
/// The text with backticks left out.
std::string without_backticks(std::string cell);

}  // namespace zerolab
