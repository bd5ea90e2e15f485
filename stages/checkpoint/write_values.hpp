#pragma once

#include "stages/device/device.hpp"

namespace zerolab {

/// n elements from device memory to the end of a file, an OutputFile or a SingleFile: straight into
/// the block that is written next.
template <typename File>
void write_values(Device& device, ConstValues values, Index n, File& file) {
  const auto* bytes = static_cast<const std::byte*>(values.data());
  file.write(n * size_of(values.dtype()), [&](Index done, std::span<std::byte> out) {
    device.download(out.data(), bytes + done, static_cast<Index>(out.size()));
  });
}

}  // namespace zerolab
