#include "stages/checkpoint/check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "stages/base/error.hpp"

namespace zerolab {
namespace {

// Blocks that are there in full and are not what was written: neighbours as one range of bytes.
std::vector<Range> ranges_that_differ(const FileDigest& there, const FileDigest& expected) {
  std::vector<Range> ranges;
  const Index common = std::min(there.bytes, expected.bytes);
  for (Index begin = 0; begin < common; begin += kBlockBytes) {
    const Index end = std::min(begin + kBlockBytes, expected.bytes);
    const auto i = static_cast<std::size_t>(begin / kBlockBytes);
    const bool cut = std::min(begin + kBlockBytes, there.bytes) != end;
    if (cut || there.blocks[i] == expected.blocks[i]) continue;
    if (!ranges.empty() && ranges.back().end == begin) {
      ranges.back().end = end;
    } else {
      ranges.push_back({begin, end});
    }
  }
  return ranges;
}

/// Checks the file of one rank; adds what it has read, and what is wrong.
void check_shard(const Checkpoint& checkpoint, std::size_t rank,
                 const std::function<void(Index bytes)>& on_block, CheckReport& report) {
  const std::string path = checkpoint.file_of(rank);
  const auto wrong = [&](const std::string& why) {
    report.problems.push_back(fmt::format("{} {}", path, why));
  };
  const FileDigest& expected = checkpoint.manifest().shards[rank].digest;
  const FileDigest there = InputFile(path).digest(on_block);
  ++report.files;
  report.bytes += there.bytes;
  const std::size_t before = report.problems.size();
  for (const Range& range : ranges_that_differ(there, expected)) {
    wrong(fmt::format("is not what was written: the checksum of bytes {} to {} differs",
                      range.begin, range.end));
  }
  if (report.problems.size() > before || there.bytes != expected.bytes) return;
  if (there.xxh3 != expected.xxh3) {
    wrong("has the checksum of every block, and not that of all of them");
  }
  const SafetensorsHeader header = read_header(path);
  report.tensors += static_cast<Index>(header.tensors.size());
  const std::string other = difference(header, checkpoint.manifest().shard_header(rank).header());
  if (!other.empty()) wrong(other);
}

}  // namespace

CheckReport check_checkpoint(const Checkpoint& checkpoint,
                             const std::function<void(Index done, Index all)>& on_progress) {
  const auto start = std::chrono::steady_clock::now();
  CheckReport report;
  report.problems = checkpoint.problems_of_files();
  const Index all = checkpoint.bytes();
  Index done = 0;
  for (std::size_t rank = 0; rank < checkpoint.manifest().shards.size(); ++rank) {
    std::error_code ignored;
    if (!std::filesystem::exists(checkpoint.file_of(rank), ignored)) continue;  // told already
    try {
      check_shard(
          checkpoint, rank,
          [&](Index bytes) {
            done += bytes;
            if (on_progress) on_progress(std::min(done, all), all);
          },
          report);
    } catch (const Error& error) {  // of this file, and there are more
      report.problems.push_back(error.what_happened());
    }
  }
  report.seconds = seconds_since(start);
  return report;
}

}  // namespace zerolab
