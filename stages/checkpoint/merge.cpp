#include "stages/checkpoint/merge.hpp"

#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <cstring>

#include "stages/base/error.hpp"
#include "stages/checkpoint/single_file.hpp"
#include "stages/checkpoint/state_reader.hpp"
#include "stages/memory/usage.hpp"

namespace zerolab {
namespace fs = std::filesystem;
namespace {

// Beside the reader's blocks: one being converted (twice its size in fp32, and back again), and one
// being written.
constexpr Index kOwnMemory = 8 * kBlockBytes;
constexpr Index kBlocksOfShard = 2;

void expect_memory(const Manifest& manifest, Index memory) {
  const Index least = least_merge_memory(manifest);
  if (memory >= least) return;
  throw Error(Code::usage,
              fmt::format("a merge of {} shards in {} of memory", manifest.world_size(),
                          human_bytes(memory)),
              fmt::format("it needs {} at least: say --max-memory {}MiB", human_bytes(least),
                          ceil_div(least, Index{1} << 20)));
}

// A file there would be a shard too many, or instead of one.
void expect_elsewhere(const Checkpoint& checkpoint, const fs::path& file) {
  std::error_code failed;
  const fs::path folder = file.has_parent_path() ? file.parent_path() : fs::path(".");
  if (fs::equivalent(folder, checkpoint.folder(), failed)) {
    throw Error(
        Code::usage,
        fmt::format("{} would be a file of the checkpoint that it is made of", file.string()),
        "name a file in another folder");
  }
  if (fs::is_directory(file, failed)) {
    throw Error(Code::checkpoint_write, fmt::format("{} is a folder", file.string()),
                fmt::format("name a file, as {}", (file / "model.safetensors").string()));
  }
}

bool is_infinite(std::span<const std::byte> floats, std::size_t i) {
  float value = 0;
  std::memcpy(&value, floats.data() + i * sizeof value, sizeof value);
  return std::isinf(value);
}

// A weight that training has made infinite is what it is; one that rounding does is lost.
void expect_within(Dtype to, const std::vector<std::byte>& rounded, Dtype from,
                   std::span<const std::byte> bytes, const std::string& parameter) {
  if (to == Dtype::fp32) return;
  const std::vector<std::byte> before = converted(bytes, from, Dtype::fp32);
  const std::vector<std::byte> after = converted(rounded, to, Dtype::fp32);
  for (std::size_t i = 0; i < after.size() / sizeof(float); ++i) {
    if (!is_infinite(after, i) || is_infinite(before, i)) continue;
    throw Error(
        Code::checkpoint_mismatch,
        fmt::format("'{}' has an element that is beyond all numbers of {}", parameter, name_of(to)),
        to == Dtype::fp16 ? "merge it in fp32 or bf16" : "merge it in fp32");
  }
}

}  // namespace

Index least_merge_memory(const Manifest& manifest) {
  return kOwnMemory + kBlocksOfShard * manifest.world_size() * kBlockBytes;
}

MergeReport merge_checkpoint(const Checkpoint& checkpoint, const fs::path& file,
                             const MergeOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  const Manifest& manifest = checkpoint.manifest();
  expect_memory(manifest, options.max_memory);
  expect_elsewhere(checkpoint, file);
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
                    const std::vector<std::byte> result = converted(bytes, dtype, options.dtype);
                    expect_within(options.dtype, result, dtype, bytes, each.name);
                    out.write(result);
                  }
                  if (options.on_progress) options.on_progress(out.written(), out.expected());
                });
    ++report.parameters;
    report.elements += numel(each.shape);
  }
  report.bytes = out.finish();
  report.bytes_read = reader.bytes_read();
  report.seconds = seconds_since(start);
  return report;
}

}  // namespace zerolab
