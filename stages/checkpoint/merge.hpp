#pragma once

#include <filesystem>
#include <functional>

#include "stages/checkpoint/checkpoint.hpp"

namespace zerolab {

inline constexpr Index kMergeMemory = Index{256} << 20;  // bytes, unless something else is asked

struct MergeOptions {
  Dtype dtype = Dtype::fp32;
  Index max_memory = kMergeMemory;
  std::function<void(Index done, Index all)> on_progress = {};  // bytes of the file
};

struct MergeReport {
  Index parameters = 0;  // tensors
  Index elements = 0;
  Index bytes = 0;       // of the file
  Index bytes_read = 0;  // of the shards
  double seconds = 0;
};

/// What a merge needs at least, in bytes: two blocks of every shard, so that it need not read one
/// again when a parameter lies in all of them, and what it works with itself.
Index least_merge_memory(const Manifest& manifest);

/// Writes the weights of a checkpoint into one safetensors file under the model's names, streaming:
/// beside the manifest it holds at most `max_memory`, however large the model is. In fp32 they are
/// the masters, where there are any; a 16-bit type is rounded to once. Second names of tied weights
/// are notes in the metadata. The file has another name until it is whole.
///
/// Throws Error: Code::usage for less than least_merge_memory, or for a file in the checkpoint's
/// folder; Code::checkpoint_damaged; Code::checkpoint_mismatch when a weight is beyond all numbers
/// of `dtype`; Code::checkpoint_write.
MergeReport merge_checkpoint(const Checkpoint& checkpoint, const std::filesystem::path& file,
                             const MergeOptions& options);

}  // namespace zerolab
