#pragma once

#include <cstddef>
#include <span>

#include "stages/base/dtype.hpp"
#include "stages/base/half.hpp"

namespace zerolab {

/// Throws Error (Code::usage) unless it is fp32.
void expect_fp32(Dtype dtype);

/// Where elements lie in device memory, and of which type they are. Code that computes with floats
/// itself may take them as such; that throws Error (Code::usage) when they are 16-bit.
// NOLINTBEGIN(google-explicit-constructor): floats are values, and values may be taken as floats.
class ConstValues {
 public:
  ConstValues() = default;
  ConstValues(std::nullptr_t) {}
  ConstValues(const float* floats) : data_(floats) {}
  ConstValues(const void* data, Dtype dtype) : data_(data), dtype_(dtype) {}

  const void* data() const { return data_; }
  Dtype dtype() const { return dtype_; }
  explicit operator bool() const { return data_ != nullptr; }
  bool operator==(std::nullptr_t) const { return data_ == nullptr; }
  const float* floats() const {
    expect_fp32(dtype_);
    return static_cast<const float*>(data_);
  }
  operator const float*() const { return floats(); }
  ConstValues operator+(Index elements) const {
    if (data_ == nullptr) return *this;
    return {static_cast<const std::byte*>(data_) + elements * size_of(dtype_), dtype_};
  }

 private:
  const void* data_ = nullptr;
  Dtype dtype_ = Dtype::fp32;
};

/// The same, and they may be written.
class Values {
 public:
  Values() = default;
  Values(std::nullptr_t) {}
  Values(float* floats) : data_(floats) {}
  Values(void* data, Dtype dtype) : data_(data), dtype_(dtype) {}

  void* data() const { return data_; }
  Dtype dtype() const { return dtype_; }
  explicit operator bool() const { return data_ != nullptr; }
  bool operator==(std::nullptr_t) const { return data_ == nullptr; }
  float* floats() const {
    expect_fp32(dtype_);
    return static_cast<float*>(data_);
  }
  operator float*() const { return floats(); }
  operator ConstValues() const { return {data_, dtype_}; }
  Values operator+(Index elements) const {
    if (data_ == nullptr) return *this;
    return {static_cast<std::byte*>(data_) + elements * size_of(dtype_), dtype_};
  }

 private:
  void* data_ = nullptr;
  Dtype dtype_ = Dtype::fp32;
};
// NOLINTEND(google-explicit-constructor)

/// The memory of n elements.
inline std::span<std::byte> bytes_of(Values values, Index n) {
  return {static_cast<std::byte*>(values.data()),
          static_cast<std::size_t>(n * size_of(values.dtype()))};
}

}  // namespace zerolab
