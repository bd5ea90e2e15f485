#pragma once

#include <filesystem>
#include <functional>

#include "stages/checkpoint/checkpoint.hpp"

namespace zerolab {

struct MergeOptions {
  Dtype dtype = Dtype::fp32;
  Index max_memory = Index{256} << 20;                          // bytes
  std::function<void(Index done, Index all)> on_progress = {};  // bytes of the file
};
/// What a merge needs at least.
inline constexpr Index kLeastMergeMemory = Index{8} << 20;

struct MergeReport {
  Index parameters = 0;  // tensors
  Index elements = 0;
  Index bytes = 0;       // of the file
  Index bytes_read = 0;  // of the shards
  double seconds = 0;
};

/// Writes the weights of a checkpoint into one safetensors file under the model's names, streaming:
/// beside the manifest it holds at most `max_memory`, however large the model is. In fp32 they are
/// the masters, where there are any; a 16-bit type is rounded to once. Second names of tied weights
/// are notes in the metadata. The file has another name until it is whole.
///
/// Throws Error: Code::usage for less memory than kLeastMergeMemory; Code::checkpoint_damaged;
/// Code::checkpoint_write.
MergeReport merge_checkpoint(const Checkpoint& checkpoint, const std::filesystem::path& file,
                             const MergeOptions& options);

}  // namespace zerolab
