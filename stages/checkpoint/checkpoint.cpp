#include "stages/checkpoint/checkpoint.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "stages/base/error.hpp"
#include "stages/base/nearest.hpp"

namespace zerolab {
namespace fs = std::filesystem;
namespace {

// No manifest of this world is so long; memory is not taken for whatever lies in its place.
constexpr Index kMostManifestBytes = Index{1} << 28;
constexpr Index kMostLatestBytes = 4096;

[[noreturn]] void missing(const std::string& what, const std::string& way_out) {
  throw Error(Code::checkpoint_missing, what, way_out);
}

std::string trimmed(const std::string& text) {
  constexpr std::string_view kBlank = " \t\r\n";
  const std::size_t begin = text.find_first_not_of(kBlank);
  if (begin == std::string::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlank) + 1 - begin);
}

// What may not be a folder's name inside of the checkpoints' folder.
bool is_tag(const std::string& text) {
  return !text.empty() && text.front() != '.' && text.find('/') == std::string::npos &&
         text.size() < 200;
}

std::string tags_text(const fs::path& folder) {
  const std::vector<std::string> tags = tags_in(folder);
  return tags.empty() ? fmt::format("{} has no checkpoint", folder.string())
                      : fmt::format("{} has {}", folder.string(), fmt::join(tags, ", "));
}

std::string choose_another(const fs::path& folder) {
  const std::vector<std::string> tags = tags_in(folder);
  if (tags.empty()) return "save one with --save, or start anew without --resume";
  return fmt::format("name one that is there, as {}:{}", folder.string(), tags.back());
}

std::string latest_of(const fs::path& folder) {
  const std::string file = (folder / kLatest).string();
  std::string tag;
  try {
    tag = trimmed(read_text(file, kMostLatestBytes));
  } catch (const Error& error) {
    missing(fmt::format("{}; {}", error.what_happened(), tags_text(folder)),
            choose_another(folder));
  }
  if (tag.empty()) {
    missing(fmt::format("{} is empty; {}", file, tags_text(folder)), choose_another(folder));
  }
  if (!is_tag(tag) || !fs::exists(folder / tag / kManifest)) {
    missing(fmt::format("{} names '{}', which is no checkpoint there; {}", file, tag.substr(0, 200),
                        tags_text(folder)),
            choose_another(folder));
  }
  return tag;
}

// "rank12.safetensors"
bool is_shard(const std::string& name) {
  return name.rfind("rank", 0) == 0 && fs::path(name).extension() == ".safetensors";
}

fs::path folder_named(const std::string& name) {
  const fs::path whole = name;
  if (fs::exists(whole / kManifest)) return whole.filename().empty() ? whole.parent_path() : whole;
  if (fs::is_directory(whole)) return whole / latest_of(whole);
  const std::size_t colon = name.rfind(':');
  const fs::path folder = name.substr(0, colon);
  if (colon == std::string::npos || !fs::is_directory(folder)) {
    missing(fmt::format("there is no folder {}", folder.string()), "check the path");
  }
  const std::string tag = name.substr(colon + 1);
  if (!is_tag(tag) || !fs::exists(folder / tag / kManifest)) {
    missing(fmt::format("there is no checkpoint '{}'; {}{}", tag, tags_text(folder),
                        did_you_mean(tag, tags_in(folder))),
            choose_another(folder));
  }
  return folder / tag;
}

}  // namespace

std::string tag_of_step(Index step) { return fmt::format("global_step{}", step); }

fs::path partial_folder(const fs::path& folder, const std::string& tag) {
  return folder / fmt::format(".{}.partial", tag);
}

std::vector<std::string> tags_in(const fs::path& folder) {
  std::vector<std::pair<fs::file_time_type, std::string>> found;
  std::error_code failed;
  for (fs::directory_iterator entry(folder, failed), end; !failed && entry != end;
       entry.increment(failed)) {
    const std::string tag = entry->path().filename().string();
    if (!is_tag(tag)) continue;
    std::error_code none;
    const fs::file_time_type written = fs::last_write_time(entry->path() / kManifest, none);
    if (!none) found.emplace_back(written, tag);
  }
  // Where the clock of the disk is coarse, step 9 is before step 10.
  std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) {
    return std::tuple(a.first, a.second.size(), a.second) <
           std::tuple(b.first, b.second.size(), b.second);
  });
  std::vector<std::string> tags;
  tags.reserve(found.size());
  for (auto& [written, tag] : found) tags.push_back(std::move(tag));
  return tags;
}

Checkpoint Checkpoint::open(const std::string& name) {
  Checkpoint checkpoint = open_manifest(name);
  const std::vector<std::string> problems = checkpoint.problems_of_files();
  if (!problems.empty()) {
    throw Error(Code::checkpoint_damaged, problems.front(), checkpoint.way_out());
  }
  return checkpoint;
}

Checkpoint Checkpoint::open_manifest(const std::string& name) {
  try {
    return Checkpoint(folder_named(name));
  } catch (const fs::filesystem_error& error) {
    missing(fmt::format("{} cannot be read: {}", name, error.code().message()), "check the path");
  }
}

bool Checkpoint::exists(const std::string& folder) {
  std::error_code failed;
  return fs::exists(fs::path(folder) / kLatest, failed) || !tags_in(folder).empty();
}

Checkpoint::Checkpoint(fs::path folder) : folder_(std::move(folder)) {
  const std::string file = (folder_ / kManifest).string();
  const std::string text = read_text(file, kMostManifestBytes);
  manifest_ = parse_manifest(text, file);
  fingerprint_ = xxh3(text);
  const std::string called = fs::canonical(folder_).filename().string();
  if (manifest_.tag != called) {
    throw Error(
        Code::checkpoint_damaged,
        fmt::format("{} is of '{}', and its folder is called '{}'", file, manifest_.tag, called),
        "call the folder what the checkpoint is, or take another one");
  }
}

std::vector<std::string> Checkpoint::problems_of_files() const {
  std::vector<std::string> problems;
  for (std::size_t rank = 0; rank < manifest_.shards.size(); ++rank) {
    std::error_code failed;
    const auto bytes = fs::file_size(file_of(rank), failed);
    const Index expected = manifest_.shards[rank].digest.bytes;
    if (failed) {
      problems.push_back(fmt::format("{} cannot be read: {}", file_of(rank), failed.message()));
    } else if (static_cast<Index>(bytes) != expected) {
      problems.push_back(
          fmt::format("{} has {} bytes, the manifest says {}", file_of(rank), bytes, expected));
    }
  }
  for (const fs::directory_entry& entry : fs::directory_iterator(folder_)) {
    const std::string name = entry.path().filename().string();
    const auto known = std::any_of(manifest_.shards.begin(), manifest_.shards.end(),
                                   [&name](const Shard& shard) { return shard.file == name; });
    if (!is_shard(name) || known) continue;
    problems.push_back(fmt::format("{} is a shard too many: the manifest has {} ranks",
                                   entry.path().string(), manifest_.world_size()));
  }
  return problems;
}

Index Checkpoint::bytes() const {
  Index bytes = 0;
  for (const Shard& shard : manifest_.shards) bytes += shard.digest.bytes;
  return bytes;
}

std::string Checkpoint::way_out() const {
  const fs::path folder = folder_.parent_path();
  std::vector<std::string> others = tags_in(folder);
  std::erase(others, folder_.filename().string());
  if (others.empty()) return "restore the file, or start anew";
  return fmt::format("restore the file, or take an earlier one: {}:{}", folder.string(),
                     others.back());
}

}  // namespace zerolab
