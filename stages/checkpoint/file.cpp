#include "stages/checkpoint/file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <utility>

#include "stages/base/error.hpp"
#include "stages/memory/usage.hpp"

namespace zerolab {
namespace fs = std::filesystem;
namespace {

using Clock = std::chrono::steady_clock;

fs::path folder_of(const fs::path& path) {
  return path.has_parent_path() ? path.parent_path() : fs::path(".");
}

std::string free_on_disk(const fs::path& path) {
  std::error_code failed;
  const fs::space_info space = fs::space(folder_of(path), failed);
  return failed ? "?" : human_bytes(static_cast<Index>(space.available));
}

std::string longest_file() {
  rlimit limit = {};
  if (::getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return "?";
  return human_bytes(static_cast<Index>(limit.rlim_cur));
}

// `needed` bytes, of which `written` are there, if it is about bytes.
[[noreturn]] void cannot_write(const fs::path& path, int error, Index needed = 0,
                               Index written = 0) {
  std::string why = std::strerror(error);
  std::string way_out = "name a folder that may be written; earlier checkpoints are whole";
  if (error == ENOSPC || error == EDQUOT) {
    if (needed > 0) {
      why += fmt::format(" ({} needed, of which {} are written; {} free)", human_bytes(needed),
                         human_bytes(written), free_on_disk(path));
    }
    way_out = "make room, or keep fewer checkpoints (--keep); earlier ones are whole";
  } else if (error == EFBIG) {
    why += fmt::format(" ({} needed, a file may have {})", human_bytes(needed), longest_file());
    way_out = "allow larger files (ulimit -f), or use more ranks; earlier checkpoints are whole";
  }
  throw Error(Code::checkpoint_write, fmt::format("{} cannot be written: {}", path.string(), why),
              way_out);
}

// What was renamed in it is on the disk for good.
void sync_folder(const fs::path& folder) {
  const int file = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (file < 0) cannot_write(folder, errno);
  const int failed = ::fsync(file) != 0 ? errno : 0;
  ::close(file);
  // Some file systems have no such thing as a folder's sync.
  if (failed != 0 && failed != EINVAL && failed != ENOTSUP) cannot_write(folder, failed);
}

// Swapped in one go, so that there is a whole folder of this name at every moment. Where the file
// system cannot (NFS), the old one steps aside first.
void replace_folder(const fs::path& from, const fs::path& to) {
  if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_EXCHANGE) != 0) {
    if (errno != EINVAL && errno != ENOSYS && errno != ENOTSUP) cannot_write(to, errno);
    const fs::path aside = from.string() + ".partial";
    if (::rename(to.c_str(), aside.c_str()) != 0) cannot_write(to, errno);
    if (::rename(from.c_str(), to.c_str()) != 0) cannot_write(to, errno);
    if (::rename(aside.c_str(), from.c_str()) != 0) cannot_write(to, errno);
  }
  sync_folder(folder_of(to));
  std::error_code ignored;
  fs::remove_all(from, ignored);
}

}  // namespace

std::uint64_t xxh3(std::span<const std::byte> bytes) {
  return XXH3_64bits(bytes.data(), bytes.size());
}

struct OutputFile::Hash {
  XXH3_state_t state;
};

OutputFile::OutputFile(fs::path path, Index expected)
    : path_(std::move(path)),
      expected_(expected),
      file_(::open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666)),
      block_(kBlockBytes),
      hash_(std::make_unique<Hash>()) {
  if (file_ < 0) cannot_write(path_, errno, expected_);
  XXH3_64bits_reset(&hash_->state);
}

OutputFile::~OutputFile() {
  if (file_ < 0) return;
  ::close(file_);
  ::unlink(path_.c_str());
}

void OutputFile::write(std::span<const std::byte> bytes) {
  write(static_cast<Index>(bytes.size()), [&](Index done, std::span<std::byte> out) {
    std::memcpy(out.data(), bytes.data() + done, out.size());
  });
}

void OutputFile::write(Index bytes, const std::function<void(Index, std::span<std::byte>)>& fill) {
  for (Index done = 0; done < bytes;) {
    const std::span<std::byte> room = std::span(block_).subspan(filled_);
    const auto part = room.first(std::min(room.size(), static_cast<std::size_t>(bytes - done)));
    fill(done, part);
    done += static_cast<Index>(part.size());
    filled_ += part.size();
    if (filled_ == block_.size()) write_block();
  }
}

void OutputFile::write_block() {
  const std::span<const std::byte> block = std::span(block_).first(filled_);
  digest_.blocks.push_back(xxh3(block));
  XXH3_64bits_update(&hash_->state, block.data(), block.size());
  const Clock::time_point start = Clock::now();
  for (std::span<const std::byte> rest = block; !rest.empty();) {
    const ssize_t written = ::write(file_, rest.data(), rest.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) {
      const auto unwritten = static_cast<Index>(rest.size());
      const Index in_block = static_cast<Index>(block.size()) - unwritten;
      cannot_write(path_, errno, expected_, digest_.bytes + in_block);
    }
    rest = rest.subspan(static_cast<std::size_t>(written));
  }
  // The disk begins while the next block is made; who waits for it is close().
  ::sync_file_range(file_, digest_.bytes, static_cast<Index>(block.size()), SYNC_FILE_RANGE_WRITE);
  digest_.bytes += static_cast<Index>(block.size());
  filled_ = 0;
  write_seconds_ += seconds_since(start);
}

FileDigest OutputFile::close() {
  if (filled_ > 0) write_block();
  const Clock::time_point start = Clock::now();
  if (::fsync(file_) != 0) cannot_write(path_, errno, expected_, digest_.bytes);
  if (::close(std::exchange(file_, -1)) != 0) {
    const int error = errno;
    ::unlink(path_.c_str());
    cannot_write(path_, error, expected_, digest_.bytes);
  }
  sync_seconds_ += seconds_since(start);
  digest_.xxh3 = XXH3_64bits_digest(&hash_->state);
  return digest_;
}

void write_durably(const fs::path& path, std::string_view text) {
  const fs::path partial = folder_of(path) / fmt::format(".{}.partial", path.filename().string());
  OutputFile file(partial, static_cast<Index>(text.size()));
  file.write(text);
  file.close();
  try {
    rename_durably(partial, path);
  } catch (const Error&) {
    ::unlink(partial.c_str());
    throw;
  }
}

void rename_durably(const fs::path& from, const fs::path& to) {
  std::error_code unknown;
  if (fs::is_directory(to, unknown) && fs::is_directory(from, unknown)) {
    return replace_folder(from, to);
  }
  if (::rename(from.c_str(), to.c_str()) != 0) cannot_write(to, errno);
  sync_folder(folder_of(to));
}

void make_folder(const fs::path& path) {
  std::error_code failed;
  fs::create_directories(path, failed);
  if (failed) cannot_write(path, failed.value());
}

InputFile::InputFile(std::string path)
    // Who names a pipe is told so, rather than waiting for somebody to write into it.
    : path_(std::move(path)), file_(::open(path_.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC)) {
  struct stat status = {};
  std::string why;
  if (file_ < 0 || ::fstat(file_, &status) != 0) {
    why = std::strerror(errno);
  } else if (!S_ISREG(status.st_mode)) {
    why = "it is no file";
  }
  if (!why.empty()) {
    if (file_ >= 0) ::close(file_);
    throw Error(Code::checkpoint_missing, fmt::format("{} cannot be read: {}", path_, why),
                "check the path");
  }
  bytes_ = static_cast<Index>(status.st_size);
}

InputFile::~InputFile() { ::close(file_); }

void InputFile::read(Index offset, std::span<std::byte> out) const {
  while (!out.empty()) {
    const ssize_t got = ::pread(file_, out.data(), out.size(), offset);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) {
      throw Error(Code::checkpoint_damaged,
                  fmt::format("{}: byte {} cannot be read: {}", path_, offset,
                              got < 0 ? std::strerror(errno) : "the file ends before it"),
                  "take another checkpoint");
    }
    offset += got;
    out = out.subspan(static_cast<std::size_t>(got));
  }
}

FileDigest InputFile::digest(const std::function<void(Index bytes)>& on_block) const {
  FileDigest digest{.bytes = bytes_, .xxh3 = 0, .blocks = {}};
  XXH3_state_t whole;
  XXH3_64bits_reset(&whole);
  std::vector<std::byte> block;
  for (Index done = 0; done < bytes_; done += kBlockBytes) {
    block.resize(static_cast<std::size_t>(std::min(kBlockBytes, bytes_ - done)));
    read(done, block);
    XXH3_64bits_update(&whole, block.data(), block.size());
    digest.blocks.push_back(zerolab::xxh3(block));
    on_block(static_cast<Index>(block.size()));
  }
  digest.xxh3 = XXH3_64bits_digest(&whole);
  return digest;
}

std::string brief(std::string_view text) {
  constexpr std::size_t kMost = 300;
  text = text.substr(0, text.find('\n'));
  return text.size() <= kMost ? std::string(text) : fmt::format("{}...", text.substr(0, kMost));
}

std::string read_text(const std::string& path, Index most) {
  const InputFile file(path);
  if (file.bytes() > most) {
    throw Error(
        Code::checkpoint_damaged,
        fmt::format("{} has {} bytes, and no such file has more than {}", path, file.bytes(), most),
        "take another checkpoint");
  }
  std::string text(static_cast<std::size_t>(file.bytes()), '\0');
  file.read(0, std::as_writable_bytes(std::span(text)));
  return text;
}

}  // namespace zerolab
