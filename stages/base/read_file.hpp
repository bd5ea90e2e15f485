#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace zerolab {

/// All bytes of a file; nothing if it is not there or cannot be read. For small texts.
std::optional<std::string> read_file(const std::filesystem::path& file);

}  // namespace zerolab
