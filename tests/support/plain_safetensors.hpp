#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

// A safetensors file read once more, from the format's description: nothing of stages/checkpoint is
// used.

namespace zerolab::test {

struct PlainTensor {
  std::string dtype;  // "F32", "F16", "BF16"
  std::vector<std::int64_t> shape;
  std::vector<std::uint32_t> bits;  // of each element, widened to fp32
};

struct PlainFile {
  std::map<std::string, std::string> metadata;
  std::map<std::string, PlainTensor> tensors;
};

/// std::runtime_error with the reason unless the tensors fill the file exactly, each as large as
/// its shape says.
PlainFile read_plain_safetensors(const std::filesystem::path& file);

}  // namespace zerolab::test
