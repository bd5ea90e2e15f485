#include "stages/tensor/tensor.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

namespace zerolab {

Index numel(const Shape& shape) {
  Index count = 1;
  for (const Index extent : shape) count *= extent;
  return count;
}

std::string to_string(const Shape& shape) { return fmt::format("[{}]", fmt::join(shape, ", ")); }

Tensor::Tensor(Ledger& ledger, Shape shape, Dtype dtype, Category category, std::string owner,
               const Governor* governor)
    : storage_(std::make_shared<Buffer>(ledger.allocate(zerolab::numel(shape) * size_of(dtype),
                                                        category, std::move(owner), governor))),
      shape_(std::move(shape)),
      dtype_(dtype) {}

Tensor Tensor::reshaped(Shape shape) const {
  for (Index& extent : shape) {
    if (extent < 0) extent = numel() / -zerolab::numel(shape);
  }
  Tensor result = *this;
  result.shape_ = std::move(shape);
  return result;
}

}  // namespace zerolab
