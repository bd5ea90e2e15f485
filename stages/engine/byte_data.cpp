#include "stages/engine/byte_data.hpp"

#include <fmt/format.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <iterator>
#include <system_error>
#include <utility>

#include "stages/base/error.hpp"
#include "stages/base/philox.hpp"

namespace zerolab {
namespace fs = std::filesystem;
namespace {

constexpr std::array kLicences{"Apache-2.0", "CC0-1.0", "GFDL-1.3", "GPL-3",
                               "LGPL-3",     "MPL-1.1", "MPL-2.0"};
constexpr std::uint64_t kLicencesHash = 0xD635B6F61470EE19;  // of Debian 12 and 13

constexpr std::string_view kAnotherText = "name another file or folder with --data";

[[noreturn]] void refuse(std::string what, std::string way_out = std::string(kAnotherText)) {
  throw Error(Code::data, std::move(what), std::move(way_out));
}

void append_file(const fs::path& file, Text& text) {
  std::ifstream in(file, std::ios::binary);
  if (!in) refuse(fmt::format("cannot open {}", file.string()), "check that the file may be read");
  text.parts.push_back({file, text.size()});
  std::array<char, 1 << 16> chunk;
  while (in) {
    in.read(chunk.data(), chunk.size());
    text.bytes.insert(text.bytes.end(), chunk.begin(), chunk.begin() + in.gcount());
  }
  if (in.bad()) refuse(fmt::format("reading {} failed", file.string()), "check the file");
}

std::vector<fs::path> files_below(const fs::path& folder) {
  std::vector<fs::path> files;
  try {
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder)) {
      if (entry.is_regular_file()) files.push_back(entry.path());
    }
  } catch (const fs::filesystem_error& error) {
    refuse(fmt::format("cannot list {}: {}", folder.string(), error.code().message()),
           "check that the folder may be read");
  }
  std::sort(files.begin(), files.end());
  return files;
}

void seal(Text& text) {
  text.bytes.shrink_to_fit();
  text.hash = XXH64(text.bytes.data(), text.bytes.size(), 0);
}

void copy_sequence(const std::vector<std::uint8_t>& bytes, Index start, Index length,
                   std::int32_t* tokens, std::int32_t* targets) {
  const std::uint8_t* from = bytes.data() + start;
  std::copy(from, from + length, tokens);
  std::copy(from + 1, from + 1 + length, targets);
}

}  // namespace

Text load_text(const fs::path& file_or_folder) {
  std::error_code failed;
  const fs::file_status status = fs::status(file_or_folder, failed);
  const std::string name = file_or_folder.string();
  Text text;
  text.origin = name;
  switch (status.type()) {
    case fs::file_type::regular:
      append_file(file_or_folder, text);
      break;
    case fs::file_type::directory: {
      const std::vector<fs::path> files = files_below(file_or_folder);
      if (files.empty()) refuse(fmt::format("the folder {} has no files", name));
      for (const fs::path& file : files) append_file(file, text);
      break;
    }
    case fs::file_type::not_found:
      refuse(fmt::format("there is no file or folder {}", name));
    default:
      refuse(failed ? fmt::format("cannot look at {}: {}", name, failed.message())
                    : fmt::format("{} is neither a file nor a folder", name));
  }
  if (text.bytes.empty()) {
    refuse(fmt::format("{} is empty: {} file{}, 0 bytes", name, text.parts.size(),
                       text.parts.size() == 1 ? "" : "s"));
  }
  seal(text);
  return text;
}

Text load_default_text(const fs::path& licences, const fs::path& fallback) {
  std::string missing;
  for (const std::string_view name : kLicences) {
    std::error_code failed;
    if (!fs::is_regular_file(licences / name, failed)) {
      missing += fmt::format("{}{}", missing.empty() ? "" : ", ", name);
    }
  }
  if (missing.empty()) {
    Text text;
    text.origin = fmt::format("default text ({})", licences.string());
    for (const std::string_view name : kLicences) append_file(licences / name, text);
    seal(text);
    if (text.hash != kLicencesHash) {
      text.note = fmt::format(
          "the default text is not that of Debian 12 and 13 (hash {:016x}, expected {:016x}): "
          "losses will not equal those in the documentation",
          text.hash, kLicencesHash);
    }
    return text;
  }
  const std::string absent = fmt::format("{} lacks {}", licences.string(), missing);
  if (std::error_code failed; fallback.empty() || !fs::is_directory(fallback, failed)) {
    refuse(fmt::format("there is no default text: {}", absent),
           "name a file or folder with --data, or install the package base-files");
  }
  Text text = load_text(fallback);
  text.note = fmt::format(
      "the default text is the project's own guides in {}, because {}: losses will not equal those "
      "in the documentation",
      fallback.string(), absent);
  return text;
}

ByteData::ByteData(Text text, std::uint64_t seed) : text_(std::move(text)), seed_(seed) {}

void ByteData::check_fits(Index sequence_length, Index vocab_size) const {
  const Index needed = kHeldOut * (sequence_length + 1);
  if (text_.size() < needed) {
    refuse(fmt::format("{} is too short: {} bytes, but sequences of {} bytes need at least {}, of "
                       "which the last tenth is held out for validation",
                       text_.origin, text_.size(), sequence_length, needed),
           "name a longer text with --data, or a model with a shorter sequence_length");
  }
  const auto stranger = std::find_if(text_.bytes.begin(), text_.bytes.end(),
                                     [&](std::uint8_t byte) { return byte >= vocab_size; });
  if (stranger == text_.bytes.end()) return;
  const auto offset = static_cast<Index>(std::distance(text_.bytes.begin(), stranger));
  const auto behind = std::find_if(text_.parts.begin(), text_.parts.end(),
                                   [&](const Text::Part& part) { return part.begin > offset; });
  const Text::Part& part = *std::prev(behind);
  refuse(fmt::format("{} has the byte {} at offset {}, but the model's vocabulary has {} tokens",
                     part.file.string(), *stranger, offset - part.begin, vocab_size),
         "give the model a vocab_size of 256, or name another text with --data");
}

void ByteData::fill_batch(Index step, Index position, Index count, Index sequence_length,
                          std::int32_t* tokens, std::int32_t* targets) const {
  const Philox random(seed_);
  const auto starts = static_cast<std::uint64_t>(train_size() - sequence_length);
  for (Index i = 0; i < count; ++i) {
    const Philox::Block block =
        random(static_cast<std::uint64_t>(step), static_cast<std::uint64_t>(position + i));
    const std::uint64_t draw = std::uint64_t{block.word[1]} << 32 | block.word[0];
    copy_sequence(text_.bytes, static_cast<Index>(draw % starts), sequence_length,
                  tokens + i * sequence_length, targets + i * sequence_length);
  }
}

Index ByteData::validation_sequences(Index sequence_length) const {
  return (validation_size() - 1) / sequence_length;
}

void ByteData::fill_validation(Index first, Index count, Index sequence_length,
                               std::int32_t* tokens, std::int32_t* targets) const {
  const Index sequences = validation_sequences(sequence_length);
  for (Index i = 0; i < count; ++i) {
    const Index start = train_size() + (first + i) % sequences * sequence_length;
    copy_sequence(text_.bytes, start, sequence_length, tokens + i * sequence_length,
                  targets + i * sequence_length);
  }
}

}  // namespace zerolab
