#pragma once

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

namespace zerolab::test {

/// What is in a folder, sorted; nothing if there is no such folder.
inline std::vector<std::string> names_in(const std::filesystem::path& folder) {
  std::vector<std::string> names;
  if (!std::filesystem::exists(folder)) return names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace zerolab::test
