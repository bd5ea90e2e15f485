#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "stages/engine/engine.hpp"

namespace zerolab {

struct SaveTo {
  std::filesystem::path folder;     // of checkpoints (checkpoint/checkpoint.hpp)
  std::string tag = {};             // tag_of_step(steps done) unless given
  Index keep = 0;                   // so many of the latest stay; 0: all
  nlohmann::ordered_json run = {};  // whatever the program wants to know again
};

struct SaveReport {
  std::string tag;
  Index bytes = 0;        // of all ranks
  double seconds = 0;     // in which this rank did not train
  std::string note = {};  // what the user should know; empty if nothing
};

/// Saves what training needs to go on, between two steps. Every rank calls it and writes a file;
/// rank 0 makes the folder, and gives it its name when all files are there for good; then `latest`
/// moves; then what is beyond `keep` goes. At every moment each checkpoint that has a name is
/// whole. Records a checkpoint event.
///
/// Throws Error on every rank, after taking away what it has written: Code::checkpoint_write,
/// Code::checkpoint_tags when ranks have different tags and settings.tag_validation is fail.
SaveReport save_checkpoint(Runtime& runtime, Engine& engine, const SaveTo& to);

/// Makes the folder, on rank 0, if there is none, and finds out whether it may be written: now
/// rather than after hours. Every rank calls it. Throws Error (Code::checkpoint_write).
void prepare_to_save(CommStream& comm, const std::filesystem::path& folder);

}  // namespace zerolab
