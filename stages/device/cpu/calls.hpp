#pragma once

#include <compare>
#include <string_view>
#include <variant>

#include "stages/device/cpu/onednn.hpp"
#include "stages/device/device.hpp"

namespace zerolab {

/// What oneDNN computes for a [rows, width] matrix.
enum class RowOperation {
  layer_norm,
  layer_norm_backward,
  softmax,
  log_softmax,
  logistic,
  exponential,
};

struct RowCall {
  RowOperation operation;
  Index rows = 0, width = 0;
  float epsilon = 0;  // layer norm only

  auto operator<=>(const RowCall&) const = default;
};

struct ProductCall {
  Product product;
  Dtype dtype;  // of all tensors

  auto operator<=>(const ProductCall&) const = default;
};

/// A call of oneDNN as a value: nothing else decides which primitive computes it.
using Call = std::variant<ProductCall, RowCall>;

std::string_view name_of(const Call& call);

/// Chooses the primitive. Throws dnnl::error where oneDNN has none.
onednn::Descriptor describe(const Call& call, const onednn::Context& context);

}  // namespace zerolab
