#include "tests/support/fuzz_input.hpp"

#include <fmt/format.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <string>

#include "stages/checkpoint/manifest.hpp"

namespace zerolab::test {
namespace {

void require(bool condition, const char* what) {
  if (!condition) throw std::logic_error(what);
}

/// Takes a line from the front.
std::string_view take_line(std::string_view& text) {
  const std::string_view line = text.substr(0, text.find('\n'));
  text.remove_prefix(std::min(text.size(), line.size() + 1));
  return line;
}

/// Takes a number and the blank in front of it.
template <typename Number>
std::optional<Number> take_number(std::string_view& line) {
  if (line.empty() || line.front() != ' ') return std::nullopt;
  Number number{};
  const auto [end, failed] = std::from_chars(line.data() + 1, line.data() + line.size(), number);
  if (failed != std::errc()) return std::nullopt;
  line.remove_prefix(static_cast<std::size_t>(end - line.data()));
  return number;
}

struct Lengths {
  std::uint64_t header;
  Index file;
};

/// Takes the line of a header from the front; nothing if it is none.
std::optional<Lengths> take_lengths(std::string_view& input) {
  constexpr std::string_view kHeader = "header";
  std::string_view line = take_line(input);
  if (line.rfind(kHeader, 0) != 0) return std::nullopt;
  line.remove_prefix(kHeader.size());
  const auto header = take_number<std::uint64_t>(line);
  const auto file = take_number<Index>(line);
  if (!header || !file || *file < 0 || *file > (Index{1} << 62)) return std::nullopt;
  return Lengths{*header, *file};
}

/// As a reader of files does: the length first, then as many bytes as it says.
void read_header(std::uint64_t length, Index file_bytes, std::string_view json) {
  const std::string_view first(reinterpret_cast<const char*>(&length), sizeof length);
  const auto there = static_cast<std::size_t>(std::min<Index>(file_bytes, kLengthBytes));
  const Index bytes = header_length(first.substr(0, there), file_bytes, "file");
  require(bytes >= 0 && bytes <= file_bytes - kLengthBytes, "a header beyond its file");
  if (bytes > static_cast<Index>(json.size())) return;  // a file that is not here
  const SafetensorsHeader header =
      parse_header(json.substr(0, static_cast<std::size_t>(bytes)), file_bytes, "file");
  Index end = 0;
  for (const TensorEntry& entry : header.tensors) {  // what is accepted fills the file
    require(entry.begin == end && entry.end >= entry.begin,
            "tensors that do not follow each other");
    end = entry.end;
  }
  require(header.data_begin + end == file_bytes, "tensors that do not fill the file");
}

/// Compact, without the checksum; nothing if the library could not write it.
std::optional<std::string> with_checksum(std::string_view text) {
  const auto shallow = [](int depth, nlohmann::ordered_json::parse_event_t,
                          nlohmann::ordered_json&) { return depth < 200; };
  auto json = nlohmann::ordered_json::parse(text, shallow, false);
  if (!json.is_object()) return std::nullopt;
  json.erase("xxh3");
  using Handler = nlohmann::ordered_json::error_handler_t;
  const std::string compact = json.dump(-1, ' ', false, Handler::replace);
  char digits[17];
  std::snprintf(digits, sizeof digits, "%016llx",
                static_cast<unsigned long long>(XXH3_64bits(compact.data(), compact.size())));
  json["xxh3"] = digits;
  return json.dump(-1, ' ', false, Handler::replace);
}

void read_manifest(std::string_view text) {
  const Manifest manifest = parse_manifest(text, "file");
  require(manifest.world_size() > 0, "no ranks");
  for (std::size_t rank = 0; rank < manifest.shards.size(); ++rank) {
    const Shard& shard = manifest.shards[rank];
    const SafetensorsWriter writer = manifest.shard_header(rank);
    const std::string header = writer.text();
    require(static_cast<Index>(header.size()) + writer.header().data_bytes() == shard.digest.bytes,
            "a shard of another length");
    for (const SavedSlice& slice : shard.slices) {
      const Shape& shape = manifest.parameters.at(slice.parameter).shape;
      require(slice.range.begin < slice.range.end && slice.range.end <= numel(shape),
              "a slice beyond its parameter");
    }
  }
  const std::string again = to_text(manifest);  // what is accepted can be written and read again
  require(to_text(parse_manifest(again, "file")) == again, "another manifest when read again");
}

}  // namespace

void read_fuzz_input(std::string_view input) {
  std::string_view json = input;
  if (take_line(json) == "manifest") {
    const std::optional<std::string> text = with_checksum(json);
    read_manifest(text ? std::string_view(*text) : json);
  } else if (const auto lengths = take_lengths(json = input)) {
    read_header(lengths->header, lengths->file, json);
  }
}

std::string with_right_length(std::string_view input) {
  std::string_view json = input;
  const auto lengths = take_lengths(json);
  if (!lengths) return std::string(input);
  const auto behind_length = static_cast<std::uint64_t>(std::max(Index{0}, lengths->file - 8));
  const std::uint64_t data = behind_length - std::min(behind_length, lengths->header);
  return fmt::format("header {} {}\n{}", json.size(), 8 + json.size() + data, json);
}

}  // namespace zerolab::test
