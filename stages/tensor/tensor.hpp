#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "stages/base/dtype.hpp"
#include "stages/memory/ledger.hpp"

namespace zerolab {

using Shape = std::vector<Index>;

Index numel(const Shape& shape);
/// "[4, 64]".
std::string to_string(const Shape& shape);

/// Shape and dtype over a Buffer, row-major. Copies share the buffer; the last one gives it back.
class Tensor {
 public:
  Tensor() = default;
  Tensor(Ledger& ledger, Shape shape, Dtype dtype, Category category, std::string owner,
         const Governor* governor = nullptr);

  explicit operator bool() const { return storage_ != nullptr; }
  const Shape& shape() const { return shape_; }
  Dtype dtype() const { return dtype_; }
  Index numel() const { return zerolab::numel(shape_); }
  Index bytes() const { return storage_ ? storage_->bytes() : 0; }
  /// Elements of the last dimension, and the number of such rows.
  Index width() const { return shape_.back(); }
  Index rows() const { return width() == 0 ? 0 : numel() / width(); }

  /// The same elements in another shape; one extent may be -1, which is worked out.
  Tensor reshaped(Shape shape) const;

  /// Whether the loss may depend on a trainable parameter through these values, so that a backward
  /// pass has to give their gradient. Modules say so (model/module.hpp).
  bool needs_gradient() const { return needs_gradient_; }
  void set_needs_gradient(bool needs) { needs_gradient_ = needs; }

  Values values() const { return storage_->values(dtype_); }
  /// Throws Error (Code::usage) unless they are fp32.
  float* floats() const { return values().floats(); }
  std::int32_t* ints() const { return reinterpret_cast<std::int32_t*>(storage_->data()); }

 private:
  std::shared_ptr<Buffer> storage_;
  Shape shape_;
  Dtype dtype_ = Dtype::fp32;
  bool needs_gradient_ = false;
};

}  // namespace zerolab
