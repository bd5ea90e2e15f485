#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "stages/base/types.hpp"

namespace zerolab {

/// What tells a file from one that was damaged: its length, the XXH3 (64 bits) of all of it, and
/// that of every block, so that who needs a part need not read the rest.
struct FileDigest {
  Index bytes = 0;
  std::uint64_t xxh3 = 0;
  std::vector<std::uint64_t> blocks;  // the last may be shorter

  bool operator==(const FileDigest&) const = default;
};
inline constexpr Index kBlockBytes = Index{1} << 20;
std::uint64_t xxh3(std::span<const std::byte> bytes);
inline std::uint64_t xxh3(std::string_view text) { return xxh3(std::as_bytes(std::span(text))); }

inline double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// A file in the making, block by block. It has its own name from the beginning: write it where
/// nobody looks, and rename. One that is not closed is taken away. Every function throws Error
/// (Code::checkpoint_write), which says how much room the disk has if that was it.
class OutputFile {
 public:
  /// `expected` bytes will come, for messages.
  OutputFile(std::filesystem::path path, Index expected);
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  void write(std::span<const std::byte> bytes);
  void write(std::string_view text) { write(std::as_bytes(std::span(text))); }
  /// The same without a copy between: `fill` puts `bytes` bytes where it is told to, in parts.
  void write(Index bytes, const std::function<void(Index done, std::span<std::byte> out)>& fill);
  /// Writes the rest and returns when the disk has it for good.
  FileDigest close();

  double write_seconds() const { return write_seconds_; }
  double sync_seconds() const { return sync_seconds_; }

 private:
  void write_block();

  std::filesystem::path path_;
  Index expected_;
  int file_;
  std::vector<std::byte> block_;
  std::size_t filled_ = 0;  // bytes of the block
  FileDigest digest_;
  struct Hash;  // of the file so far
  std::unique_ptr<Hash> hash_;
  double write_seconds_ = 0, sync_seconds_ = 0;
};

/// A small text, as a whole: at no moment is there a file of this name with anything else in it
/// than the old text or the new one. Throws Error (Code::checkpoint_write).
void write_durably(const std::filesystem::path& path, std::string_view text);

/// Gives what is written a new name, for good; what had that name is replaced, a folder by a
/// folder. Throws Error (Code::checkpoint_write).
void rename_durably(const std::filesystem::path& from, const std::filesystem::path& to);

/// Throws Error (Code::checkpoint_write).
void make_folder(const std::filesystem::path& path);

/// A file that is there.
class InputFile {
 public:
  /// Throws Error (Code::checkpoint_missing).
  explicit InputFile(std::string path);
  ~InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  const std::string& path() const { return path_; }
  Index bytes() const { return bytes_; }
  /// Fills `out`. Throws Error (Code::checkpoint_damaged) if the file has not as much, or the disk
  /// fails.
  void read(Index offset, std::span<std::byte> out) const;
  /// Of all of it, block by block, which is all the memory it takes. `on_block` is told how many
  /// bytes each block has. Throws as `read`.
  FileDigest digest(const std::function<void(Index bytes)>& on_block) const;

 private:
  std::string path_;
  int file_;
  Index bytes_ = 0;
};

/// The beginning of a text, one line: for messages that quote what anybody may have written.
std::string brief(std::string_view text);

/// All of a file of at most so many bytes. Throws Error: as InputFile; Code::checkpoint_damaged if
/// it has more.
std::string read_text(const std::string& path, Index most);

}  // namespace zerolab
