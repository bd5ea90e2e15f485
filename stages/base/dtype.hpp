#pragma once

#include <string_view>

#include "stages/base/types.hpp"

namespace zerolab {

/// Element types of tensors and messages.
enum class Dtype { fp32, fp16, bf16, int32, bytes };

constexpr Index size_of(Dtype dtype) {
  switch (dtype) {
    case Dtype::fp32:
    case Dtype::int32:
      return 4;
    case Dtype::fp16:
    case Dtype::bf16:
      return 2;
    case Dtype::bytes:
      return 1;
  }
  return 0;
}

constexpr std::string_view name_of(Dtype dtype) {
  switch (dtype) {
    case Dtype::fp32:
      return "fp32";
    case Dtype::fp16:
      return "fp16";
    case Dtype::bf16:
      return "bf16";
    case Dtype::int32:
      return "int32";
    case Dtype::bytes:
      return "bytes";
  }
  return "?";
}

}  // namespace zerolab
