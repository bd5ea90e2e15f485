#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lab/options.hpp"
#include "stages/checkpoint/checkpoint.hpp"
#include "stages/config/resolve.hpp"

namespace zerolab {

/// What a run goes on from, as its checkpoint has it (Manifest::run).
struct Resumed {
  Checkpoint checkpoint;
  ModelDescription model = {};
  std::vector<Given> settings = {};
  std::uint64_t seed = 0;
  std::optional<std::string> data = {};  // what --data named
  std::uint64_t data_hash = 0;
  std::vector<std::string> frozen = {};
  Index train_batch_size = 0;

  Index steps() const { return checkpoint.manifest().progress.steps_done; }
  std::string name() const { return checkpoint.folder().string(); }
};

/// What --resume names, null if it names nothing, or `auto` and there is nothing yet. Throws Error:
/// as Checkpoint::open; Code::checkpoint_damaged when the program's own part is not in it.
std::shared_ptr<const Resumed> resumed_by(const RunOptions& options);

}  // namespace zerolab
