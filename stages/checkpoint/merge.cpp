#include "stages/checkpoint/merge.hpp"

#include <fmt/format.h>

#include <chrono>

#include "stages/base/error.hpp"
#include "stages/checkpoint/single_file.hpp"
#include "stages/checkpoint/state_reader.hpp"
#include "stages/memory/usage.hpp"

namespace zerolab {
namespace {

// Beside the reader's blocks: one being converted, and one being written.
constexpr Index kOwnMemory = 4 * kBlockBytes;

}  // namespace

MergeReport merge_checkpoint(const Checkpoint& checkpoint, const std::filesystem::path& file,
                             const MergeOptions& options) {
  if (options.max_memory < kLeastMergeMemory) {
    throw Error(Code::usage,
                fmt::format("a merge in {} of memory", human_bytes(options.max_memory)),
                fmt::format("it needs {} at least", human_bytes(kLeastMergeMemory)));
  }
  const auto start = std::chrono::steady_clock::now();
  const Manifest& manifest = checkpoint.manifest();
  SafetensorsWriter header = header_of_model(manifest.tied, manifest.run);
  for (const SavedParameter& each : manifest.parameters) {
    header.add(each.name, options.dtype, each.shape);
  }
  StateReader reader(checkpoint, options.max_memory - kOwnMemory);
  SingleFile out(file, header);
  MergeReport report;
  for (const SavedParameter& each : manifest.parameters) {
    // What the model computes with is rounded from its master already.
    const auto state = options.dtype == manifest.dtype ? kWeights : manifest.exact_state(each);
    reader.read(each.name, state, {0, numel(each.shape)},
                [&](Range, Dtype dtype, std::span<const std::byte> bytes) {
                  if (dtype == options.dtype) {
                    out.write(bytes);
                  } else {
                    out.write(converted(bytes, dtype, options.dtype));
                  }
                  if (options.on_progress) options.on_progress(out.written(), out.expected());
                });
    ++report.parameters;
    report.elements += numel(each.shape);
  }
  report.bytes = out.finish();
  report.bytes_read = reader.bytes_read();
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return report;
}

}  // namespace zerolab
