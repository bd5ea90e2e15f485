#pragma once

#include <filesystem>
#include <string_view>

namespace zerolab {

/// Writes a file that somebody named with -o. Throws Error (Code::output_folder).
void write_output(const std::filesystem::path& file, std::string_view content);

}  // namespace zerolab
