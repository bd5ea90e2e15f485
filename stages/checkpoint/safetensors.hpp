#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "stages/base/dtype.hpp"
#include "stages/tensor/tensor.hpp"

namespace zerolab {

// The safetensors format: 8 bytes, little-endian, the length of a JSON header; the header; the
// tensors' bytes end to end (huggingface.co/docs/safetensors). Shards and merged files are such
// files, so any library that reads them reads ours.

/// One tensor of a file. Bytes [begin, end) count from behind the header.
struct TensorEntry {
  std::string name;
  std::string dtype;  // as the format calls it: "F32", "BF16", ...
  Shape shape;
  Index begin = 0, end = 0;

  bool operator==(const TensorEntry&) const = default;
};

struct SafetensorsHeader {
  std::vector<TensorEntry> tensors;             // in the order of their bytes
  std::map<std::string, std::string> metadata;  // "__metadata__"
  Index data_begin = 0;                         // where the bytes begin in the file

  /// Null if there is no tensor of this name.
  const TensorEntry* find(std::string_view name) const;
  Index data_bytes() const { return tensors.empty() ? 0 : tensors.back().end; }
};

/// What `there` has instead of what it should have; empty if the two are the same.
std::string difference(const SafetensorsHeader& there, const SafetensorsHeader& expected);

/// "F32", "F16", "BF16", and back; nothing for a type that zerolab does not compute with.
std::string_view safetensors_name(Dtype dtype);
std::optional<Dtype> dtype_named(std::string_view safetensors_name);

/// Entries one behind the other, and a header for them.
class SafetensorsWriter {
 public:
  void add(std::string name, Dtype dtype, Shape shape);
  void note(std::string key, std::string value) {
    header_.metadata[std::move(key)] = std::move(value);
  }
  const SafetensorsHeader& header() const { return header_; }
  /// The length and the header, padded with blanks so that the data is aligned to 64 bytes.
  std::string text() const;

 private:
  SafetensorsHeader header_;
};

/// Of the eight bytes that a file of `file_bytes` begins with: how long its header is. `file` is
/// how messages call it. Throws Error (Code::checkpoint_damaged) if that cannot be.
Index header_length(std::string_view first_bytes, Index file_bytes, const std::string& file);
inline constexpr Index kLengthBytes = 8;

/// The header itself, for a file of `file_bytes`. Throws Error (Code::checkpoint_damaged) unless
/// the entries fill the data exactly, each as large as its type and shape say.
SafetensorsHeader parse_header(std::string_view json, Index file_bytes, const std::string& file);

/// Both, from a file. Reads nothing behind the header. Throws Error (Code::checkpoint_damaged, or
/// Code::checkpoint_missing when there is no such file).
SafetensorsHeader read_header(const std::string& file);

}  // namespace zerolab
