#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "stages/checkpoint/manifest.hpp"

namespace zerolab::test {

/// A checkpoint of fp32 weights that are all zero, cut as stage 3 does, with tag "large": whole and
/// valid, and on a disk that knows holes it takes next to no room.
void write_sparse_checkpoint(const std::filesystem::path& folder,
                             const std::vector<SavedParameter>& parameters, int ranks);

}  // namespace zerolab::test
