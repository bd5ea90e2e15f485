#include "stages/checkpoint/safetensors.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <nlohmann/json.hpp>

#include "stages/base/error.hpp"
#include "stages/base/json_text.hpp"
#include "stages/checkpoint/file.hpp"

namespace zerolab {
namespace {

static_assert(std::endian::native == std::endian::little, "the format is little-endian");

constexpr Index kMostHeaderBytes = 100'000'000;  // as the reference implementation has it
constexpr Index kAlignment = 64;
constexpr std::string_view kMetadata = "__metadata__";

struct DtypeName {
  std::string_view name;
  Index bytes;
};
constexpr std::array kDtypes{DtypeName{"BOOL", 1},    DtypeName{"U8", 1},      DtypeName{"I8", 1},
                             DtypeName{"F8_E5M2", 1}, DtypeName{"F8_E4M3", 1}, DtypeName{"I16", 2},
                             DtypeName{"U16", 2},     DtypeName{"F16", 2},     DtypeName{"BF16", 2},
                             DtypeName{"I32", 4},     DtypeName{"U32", 4},     DtypeName{"F32", 4},
                             DtypeName{"F64", 8},     DtypeName{"I64", 8},     DtypeName{"U64", 8}};

[[noreturn]] void no_safetensors(const std::string& file, const std::string& why) {
  throw Error(Code::checkpoint_damaged, fmt::format("{}: {}", file, brief(why)),
              "take another copy of the file, or another checkpoint");
}

/// A tensor's description, whatever somebody has written there.
class EntryReader {
 public:
  EntryReader(const std::string& file, const std::string& name, const nlohmann::json& json)
      : file_(file), name_(name), json_(json) {}

  TensorEntry read() const {
    if (!json_.is_object()) refuse("is no object");
    TensorEntry entry;
    entry.name = name_;
    const nlohmann::json& dtype = field("dtype");
    if (!dtype.is_string()) refuse("has a dtype that is no string");
    entry.dtype = dtype.get<std::string>();
    const nlohmann::json& shape = field("shape");
    if (!shape.is_array()) refuse("has a shape that is no list");
    for (const nlohmann::json& extent : shape) entry.shape.push_back(whole(extent, "shape"));
    const nlohmann::json& offsets = field("data_offsets");
    if (!offsets.is_array() || offsets.size() != 2) refuse("needs two data_offsets");
    entry.begin = whole(offsets[0], "data_offsets");
    entry.end = whole(offsets[1], "data_offsets");
    check_size(entry);
    return entry;
  }

 private:
  [[noreturn]] void refuse(const std::string& why) const {
    no_safetensors(file_, fmt::format("tensor '{}' {}", name_, why));
  }

  const nlohmann::json& field(const char* key) const {
    const auto found = json_.find(key);
    if (found == json_.end()) refuse(fmt::format("has no {}", key));
    return *found;
  }

  Index whole(const nlohmann::json& value, const char* key) const {
    if (!value.is_number_unsigned() || value.get<std::uint64_t>() > (std::uint64_t{1} << 62)) {
      refuse(fmt::format("has {} in its {}, which is no count", value.dump().substr(0, 40), key));
    }
    return value.get<Index>();
  }

  void check_size(const TensorEntry& entry) const {
    const auto known = std::find_if(kDtypes.begin(), kDtypes.end(), [&](const DtypeName& each) {
      return each.name == entry.dtype;
    });
    if (known == kDtypes.end()) refuse(fmt::format("has the unknown dtype '{}'", entry.dtype));
    if (entry.begin > entry.end) refuse("ends before it begins");
    Index bytes = known->bytes;
    for (const Index extent : entry.shape) {
      if (__builtin_mul_overflow(bytes, extent, &bytes)) refuse("has a shape beyond all bounds");
    }
    if (bytes != entry.end - entry.begin) {
      refuse(fmt::format("has {} bytes, and its shape {} of {} needs {}", entry.end - entry.begin,
                         to_string(entry.shape), entry.dtype, bytes));
    }
  }

  const std::string& file_;
  const std::string& name_;
  const nlohmann::json& json_;
};

std::map<std::string, std::string> read_metadata(const nlohmann::json& json,
                                                 const std::string& file) {
  std::map<std::string, std::string> metadata;
  if (!json.is_object()) no_safetensors(file, "__metadata__ is no object");
  for (const auto& [key, value] : json.items()) {
    if (!value.is_string()) {
      no_safetensors(file, fmt::format("__metadata__ has '{}', which is no string", key));
    }
    metadata[key] = value.get<std::string>();
  }
  return metadata;
}

nlohmann::json parse(std::string_view text, const std::string& file) {
  std::vector<std::string> twice;
  nlohmann::json json;
  try {
    json = parse_json(text, "header", &twice);
  } catch (const Error& error) {
    no_safetensors(file, "the header is no JSON: " + error.what_happened());
  }
  if (!twice.empty()) no_safetensors(file, fmt::format("the header has '{}' twice", twice.front()));
  if (!json.is_object()) no_safetensors(file, "the header is no JSON object");
  return json;
}

}  // namespace

const TensorEntry* SafetensorsHeader::find(std::string_view name) const {
  const auto found = std::find_if(tensors.begin(), tensors.end(),
                                  [name](const TensorEntry& each) { return each.name == name; });
  return found == tensors.end() ? nullptr : &*found;
}

std::string difference(const SafetensorsHeader& there, const SafetensorsHeader& expected) {
  const auto [mine, other] = std::mismatch(there.tensors.begin(), there.tensors.end(),
                                           expected.tensors.begin(), expected.tensors.end());
  if (mine != there.tensors.end() || other != expected.tensors.end()) {
    return fmt::format(
        "has {}, where the manifest has {}",
        mine != there.tensors.end() ? fmt::format("'{}'", mine->name) : "no more tensors",
        other != expected.tensors.end() ? fmt::format("'{}'", other->name) : "no more");
  }
  if (there.metadata != expected.metadata) {
    return "is of another rank or checkpoint than the manifest says";
  }
  return {};
}

std::string_view safetensors_name(Dtype dtype) {
  switch (dtype) {
    case Dtype::fp32:
      return "F32";
    case Dtype::fp16:
      return "F16";
    case Dtype::bf16:
      return "BF16";
    case Dtype::int32:
      return "I32";
    case Dtype::bytes:
      return "U8";
  }
  return "?";
}

std::optional<Dtype> dtype_named(std::string_view name) {
  for (const Dtype dtype : {Dtype::fp32, Dtype::fp16, Dtype::bf16}) {
    if (safetensors_name(dtype) == name) return dtype;
  }
  return std::nullopt;
}

void SafetensorsWriter::add(std::string name, Dtype dtype, Shape shape) {
  const Index begin = header_.data_bytes();
  const Index end = begin + numel(shape) * size_of(dtype);
  header_.tensors.push_back(
      {std::move(name), std::string(safetensors_name(dtype)), std::move(shape), begin, end});
}

std::string SafetensorsWriter::text() const {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  if (!header_.metadata.empty()) json[std::string(kMetadata)] = header_.metadata;
  for (const TensorEntry& entry : header_.tensors) {
    json[entry.name] = {
        {"dtype", entry.dtype}, {"shape", entry.shape}, {"data_offsets", {entry.begin, entry.end}}};
  }
  std::string header = json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  const auto length = static_cast<Index>(header.size());
  header.resize(
      static_cast<std::size_t>(round_up(kLengthBytes + length, kAlignment) - kLengthBytes), ' ');
  const std::uint64_t bytes = header.size();
  std::string prefix(kLengthBytes, '\0');
  std::memcpy(prefix.data(), &bytes, sizeof bytes);
  return prefix + header;
}

Index header_length(std::string_view first_bytes, Index file_bytes, const std::string& file) {
  if (static_cast<Index>(first_bytes.size()) < kLengthBytes) {
    no_safetensors(file, fmt::format("has {} bytes, which is no safetensors file", file_bytes));
  }
  std::uint64_t length = 0;
  std::memcpy(&length, first_bytes.data(), sizeof length);
  if (length > static_cast<std::uint64_t>(file_bytes - kLengthBytes)) {
    no_safetensors(
        file, fmt::format("its header claims {} bytes, and the file has {}", length, file_bytes));
  }
  if (length > static_cast<std::uint64_t>(kMostHeaderBytes)) {
    no_safetensors(file, fmt::format("its header claims {} bytes, more than the format allows ({})",
                                     length, kMostHeaderBytes));
  }
  return static_cast<Index>(length);
}

SafetensorsHeader parse_header(std::string_view text, Index file_bytes, const std::string& file) {
  const nlohmann::json json = parse(text, file);
  SafetensorsHeader header;
  header.data_begin = kLengthBytes + static_cast<Index>(text.size());
  for (const auto& [name, value] : json.items()) {
    if (name == kMetadata) {
      header.metadata = read_metadata(value, file);
    } else {
      header.tensors.push_back(EntryReader(file, name, value).read());
    }
  }
  // Those without bytes go before the one that begins where they lie.
  std::sort(header.tensors.begin(), header.tensors.end(), [](const auto& a, const auto& b) {
    return std::tie(a.begin, a.end, a.name) < std::tie(b.begin, b.end, b.name);
  });
  Index end = 0;
  for (const TensorEntry& entry : header.tensors) {
    if (entry.begin != end) {
      no_safetensors(file,
                     fmt::format("tensor '{}' begins at byte {}, {} what is before it", entry.name,
                                 entry.begin, entry.begin < end ? "inside of" : "away from"));
    }
    end = entry.end;
  }
  const Index data = file_bytes - header.data_begin;
  if (end != data) {
    no_safetensors(
        file, fmt::format("its tensors have {} bytes, and {} lie behind the header", end, data));
  }
  return header;
}

SafetensorsHeader read_header(const std::string& file) {
  const InputFile input(file);
  std::string text(static_cast<std::size_t>(std::min(kLengthBytes, input.bytes())), '\0');
  input.read(0, std::as_writable_bytes(std::span(text)));
  text.resize(static_cast<std::size_t>(header_length(text, input.bytes(), file)));
  input.read(kLengthBytes, std::as_writable_bytes(std::span(text)));
  return parse_header(text, input.bytes(), file);
}

}  // namespace zerolab
