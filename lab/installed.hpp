#pragma once

#include <filesystem>

namespace zerolab {

/// The file that is running.
std::filesystem::path this_program();

/// What cmake --install puts beside the program, seen from the prefix; in the build folder it lies
/// as far from the program.
std::filesystem::path installed(const std::filesystem::path& below_prefix);

}  // namespace zerolab
