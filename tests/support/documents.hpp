#pragma once

#include <filesystem>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "stages/base/read_file.hpp"

namespace zerolab {

/// The lines of a guide in docs/.
inline std::vector<std::string> lines_of_document(const std::string& name) {
  const std::filesystem::path root =
      std::filesystem::path(__FILE__).parent_path().parent_path().parent_path();
  const auto text = read_file(root / "docs" / name);
  if (!text) throw std::runtime_error("cannot read docs/" + name);
  std::vector<std::string> lines;
  std::istringstream in(*text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

}  // namespace zerolab
