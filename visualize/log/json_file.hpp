#pragma once

#include <filesystem>
#include <fstream>

#include "visualize/log/fields.hpp"
#include "visualize/log/run_folder.hpp"

namespace zerolab::log {

/// Reads a JSON file with `read`, which takes its Fields. Throws Unreadable, with the file's name,
/// for what is no JSON and for every Mistake.
template <typename Read>
auto read_json_file(const std::filesystem::path& file, Read read) {
  try {
    std::ifstream in(file, std::ios::binary);
    const nlohmann::json json = nlohmann::json::parse(in, nullptr, false);
    if (in.bad() || json.is_discarded()) throw Mistake("is not JSON");
    return read(Fields(json));
  } catch (const Mistake& mistake) {
    throw Unreadable(fmt::format("{} {}", file.string(), mistake.what()),
                     "docs/log-format.md says what stands in the file");
  }
}

/// Whether there is such a file, and it is one.
inline bool is_file(const std::filesystem::path& path) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(path, ignored);
}

}  // namespace zerolab::log
