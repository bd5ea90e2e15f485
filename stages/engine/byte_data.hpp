#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "stages/base/types.hpp"

namespace zerolab {

/// The bytes a run learns from, and where they came from.
struct Text {
  struct Part {
    std::filesystem::path file;
    Index begin = 0;  // offset of its first byte in `bytes`
  };

  std::string origin;       // what the user named, or "default text (...)"
  std::vector<Part> parts;  // in the order of `bytes`
  std::vector<std::uint8_t> bytes;
  std::uint64_t hash = 0;  // XXH64 of `bytes`, seed 0
  std::string note;        // empty, or what the user should know about this text

  Index size() const { return static_cast<Index>(bytes.size()); }
};

/// A file, or all regular files below a folder in the order of their paths.
/// Throws Error (Code::data): not there, unreadable, no file in the folder, no byte in the files.
Text load_text(const std::filesystem::path& file_or_folder);

/// The licence texts that every Debian and Ubuntu carries. `note` says so when they are not the
/// bytes they were when this was written, or when `fallback`, a folder, was read because some are
/// missing. Throws Error (Code::data) when there is neither.
Text load_default_text(const std::filesystem::path& licences = "/usr/share/common-licenses",
                       const std::filesystem::path& fallback = {});

/// Sequences of byte tokens. The first nine tenths of the text are trained on; the rest is held
/// out. What a batch holds depends on seed, step and position in the global batch only: not on who
/// asks, nor on how many ranks there are. Never changes, so all ranks may share one.
class ByteData {
 public:
  ByteData(Text text, std::uint64_t seed);

  /// Throws Error (Code::data) when the text is too short for sequences of this length, or has a
  /// byte that is no token of this vocabulary.
  void check_fits(Index sequence_length, Index vocab_size) const;

  /// Writes `count` sequences, those at positions [position, position + count) of the global batch
  /// of this step, to tokens[count, sequence_length]; targets[i, t] is the byte after tokens[i, t].
  void fill_batch(Index step, Index position, Index count, Index sequence_length,
                  std::int32_t* tokens, std::int32_t* targets) const;

  /// How many sequences of this length the held-out part has side by side.
  Index validation_sequences(Index sequence_length) const;

  /// The same from the held-out part: sequences [first, first + count) of those; behind the last
  /// comes the first again.
  void fill_validation(Index first, Index count, Index sequence_length, std::int32_t* tokens,
                       std::int32_t* targets) const;

  const Text& text() const { return text_; }
  Index train_size() const { return text_.size() - validation_size(); }
  Index validation_size() const { return text_.size() / kHeldOut; }

 private:
  static constexpr Index kHeldOut = 10;  // one byte in ten

  Text text_;
  std::uint64_t seed_;
};

}  // namespace zerolab
