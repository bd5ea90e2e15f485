#pragma once

#include <functional>
#include <string>
#include <vector>

#include "stages/checkpoint/checkpoint.hpp"

namespace zerolab {

struct CheckReport {
  Index files = 0, bytes = 0;  // read, all of them
  Index tensors = 0;           // in those files
  double seconds = 0;
  std::vector<std::string> problems = {};  // a line each, which begins with the file
};

/// Reads every file of a checkpoint, whole and a block at a time, and compares all that its
/// manifest says of it: length, checksums of blocks and of all, header. Goes on behind what is
/// wrong, so that nothing of it is missing in the report.
CheckReport check_checkpoint(const Checkpoint& checkpoint,
                             const std::function<void(Index done, Index all)>& on_progress = {});

}  // namespace zerolab
