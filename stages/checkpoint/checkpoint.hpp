#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "stages/checkpoint/manifest.hpp"

namespace zerolab {

// A folder of checkpoints has a folder for each, called by its tag, and a file `latest` with the
// tag of the last one that is whole:
//
//     ck/latest                        global_step20
//     ck/global_step10/manifest.json
//     ck/global_step10/rank0.safetensors
//     ck/global_step10/rank1.safetensors
//     ck/global_step20/...
//
// A checkpoint in the making is called .global_step20.partial; nobody reads it.

inline constexpr std::string_view kLatest = "latest";
inline constexpr std::string_view kManifest = "manifest.json";
std::string tag_of_step(Index step);  // "global_step20", as DeepSpeed has it
std::filesystem::path partial_folder(const std::filesystem::path& folder, const std::string& tag);

/// The tags in a folder, the last written last. Empty if there is no such folder.
std::vector<std::string> tags_in(const std::filesystem::path& folder);

/// A checkpoint that is there. Making one reads the manifest and looks at the files, and opens
/// none.
class Checkpoint {
 public:
  /// `name` is "folder", which means its latest, "folder:tag", or the folder of a checkpoint.
  /// Throws Error: Code::checkpoint_missing, which lists the tags there are; as parse_manifest;
  /// Code::checkpoint_damaged for a shard that is missing, has another length, or is one too many.
  static Checkpoint open(const std::string& name);
  /// The same, but does not look at the shards: to find out what is wrong with them.
  static Checkpoint open_manifest(const std::string& name);
  /// Whether there is anything that `open` could read.
  static bool exists(const std::string& folder);

  const Manifest& manifest() const { return manifest_; }
  const std::filesystem::path& folder() const { return folder_; }
  std::string file_of(std::size_t rank) const {
    return (folder_ / manifest_.shards[rank].file).string();
  }
  /// Of the manifest, which has the checksums of everything else.
  std::uint64_t fingerprint() const { return fingerprint_; }
  Index bytes() const;
  /// What a look at the shards finds, a line each that begins with the file: missing ones, those of
  /// another length, and those that are too many.
  std::vector<std::string> problems_of_files() const;
  /// What to do if it is damaged: names an earlier one, if there is one.
  std::string way_out() const;

 private:
  explicit Checkpoint(std::filesystem::path folder);

  std::filesystem::path folder_;
  Manifest manifest_;
  std::uint64_t fingerprint_ = 0;
};

}  // namespace zerolab
