#pragma once

#include "stages/base/values.hpp"

namespace zerolab {

/// use(p) with p pointing at elements of their own type.
template <typename Use>
auto typed(ConstValues values, Use use) {
  switch (values.dtype()) {
    case Dtype::bf16:
      return use(static_cast<const Bf16*>(values.data()));
    case Dtype::fp16:
      return use(static_cast<const Fp16*>(values.data()));
    default:
      return use(values.floats());
  }
}

template <typename Use>
auto typed(Values values, Use use) {
  switch (values.dtype()) {
    case Dtype::bf16:
      return use(static_cast<Bf16*>(values.data()));
    case Dtype::fp16:
      return use(static_cast<Fp16*>(values.data()));
    default:
      return use(values.floats());
  }
}

template <typename T>
void widen(const T* in, Index n, float* out) {
  for (Index i = 0; i < n; ++i) out[i] = widened(in[i]);
}

inline void widen(ConstValues in, Index n, float* out) {
  typed(in, [&](const auto* values) { widen(values, n, out); });
}

}  // namespace zerolab
