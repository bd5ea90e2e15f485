#pragma once

#include "stages/checkpoint/state_reader.hpp"
#include "stages/engine/engine.hpp"

namespace zerolab {

/// What this rank has read.
struct LoadReport {
  Index bytes = 0, files = 0;
  double seconds = 0;
};

/// Gives an engine that has not trained yet the states of a checkpoint, whatever stage and number
/// of ranks it is of, and lets it go on from there. Every rank calls it, and reads the elements
/// that it keeps; weights that are whole everywhere are sent by their owners (Stage::publish). What
/// was loaded has the hashes that were saved, or it throws. Records a checkpoint event.
///
/// Throws Error: Code::checkpoint_mismatch when it is of another model or optimizer, or of one that
/// had frozen what is trained here; Code::checkpoint_damaged.
LoadReport load_checkpoint(Runtime& runtime, Engine& engine, const Checkpoint& checkpoint);

/// Only the weights: training begins with them, at step 1, or text is generated. Masters follow the
/// weights as they were before rounding, if the source has that.
LoadReport load_weights(Runtime& runtime, Engine& engine, const Checkpoint& checkpoint);

/// The same from one file, as `merge` or another library writes it (checkpoint/weights_file.hpp).
LoadReport load_weights(Runtime& runtime, Engine& engine, const std::string& file);

}  // namespace zerolab
