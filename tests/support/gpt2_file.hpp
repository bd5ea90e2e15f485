#pragma once

#include <filesystem>
#include <string>

namespace zerolab::test {

/// Whether there is a python3, which makes those files; says so loudly if not.
bool gpt2_files_can_be_made();

/// Makes one for tiny_transformer() (trainings.hpp) with tests/checkpoint/make_gpt2.py, whose flags
/// these are. std::runtime_error if that fails.
void make_gpt2_file(const std::filesystem::path& file, const std::string& flags = {});

}  // namespace zerolab::test
