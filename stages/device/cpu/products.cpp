#include <algorithm>

#include "stages/device/cpu/cpu_device.hpp"
#include "stages/device/cpu/primitives.hpp"
#include "stages/device/cpu/typed.hpp"

namespace zerolab {
namespace {

// What a product may take to widen its operands: 4 MiB, but at least one row and one column.
constexpr Index kMostWidened = Index{1} << 20;

Index batch(const Product& p) { return p.outer * p.inner; }

/// Work on every matrix of a batch, by its number and its first element in `operand`.
template <typename Work>
void for_each_matrix(const Product& p, const Operand& operand, Work work) {
  for (Index outer = 0; outer < p.outer; ++outer) {
    for (Index inner = 0; inner < p.inner; ++inner) {
      work(outer * p.inner + inner, outer * operand.outer_stride + inner * operand.inner_stride);
    }
  }
}

/// A product over nothing: the bias, or zero.
void fill_product(CpuDevice& device, const Product& p, ConstValues bias, Values c) {
  for_each_matrix(p, p.c, [&](Index /*number*/, Index begin) {
    for (Index row = 0; row < p.m; ++row) {
      const Values out = c + (begin + row * p.c.leading);
      if (bias) {
        device.copy(out, bias, p.n);
      } else {
        device.fill(out, p.n, 0.0F);
      }
    }
  });
}

/// The matrices of an operand end to end, as they lie in memory: [batch][rows][columns].
struct Dense {
  Index rows, columns;

  Dense(const Operand& operand, Index matrix_rows, Index matrix_columns)
      : rows(operand.transposed ? matrix_columns : matrix_rows),
        columns(operand.transposed ? matrix_rows : matrix_columns) {}
  Index size() const { return rows * columns; }
  Operand operand(const Operand& from, Index inner) const {
    return {columns, from.transposed, inner * size(), size()};
  }
};

Index elements_widened(const Product& p) {
  return batch(p) * (p.m * p.k + p.k * p.n + p.m * p.n) + (p.bias ? p.n : 0);
}

void widen_operand(const Product& p, const Operand& operand, const Dense& dense, ConstValues in,
                   float* out) {
  for_each_matrix(p, operand, [&](Index number, Index begin) {
    for (Index row = 0; row < dense.rows; ++row) {
      widen(in + (begin + row * operand.leading), dense.columns,
            out + number * dense.size() + row * dense.columns);
    }
  });
}

}  // namespace

void CpuDevice::matmul(const Product& shape, ConstValues a, ConstValues b, ConstValues bias,
                       Values c) {
  Product product = shape;
  product.bias = static_cast<bool>(bias);
  if (batch(product) * product.m * product.n == 0) return;
  if (product.k == 0) return fill_product(*this, product, bias, c);
  const bool alike =
      a.dtype() == c.dtype() && b.dtype() == c.dtype() && (!bias || bias.dtype() == c.dtype());
  if (alike &&
      (c.dtype() == Dtype::fp32 || (c.dtype() == Dtype::bf16 && onednn::multiplies_bf16()))) {
    onednn_product(product, a, b, bias, c);
  } else {
    widened_product(product, a, b, bias, c);
  }
}

void CpuDevice::onednn_product(const Product& product, ConstValues a, ConstValues b,
                               ConstValues bias, Values c) {
  const ProductCall call{product, c.dtype()};
  if (bias) {
    primitives_->run(call, {{DNNL_ARG_SRC, a.data()},
                            {DNNL_ARG_WEIGHTS, b.data()},
                            {DNNL_ARG_BIAS, bias.data()},
                            {DNNL_ARG_DST, c.data()}});
  } else {
    primitives_->run(
        call, {{DNNL_ARG_SRC, a.data()}, {DNNL_ARG_WEIGHTS, b.data()}, {DNNL_ARG_DST, c.data()}});
  }
}

// In fp32, on copies. What is too large for one copy is halved: the batch, or else the longer side
// of C, never the sum.
void CpuDevice::widened_product(const Product& p, ConstValues a, ConstValues b, ConstValues bias,
                                Values c) {
  if (elements_widened(p) > kMostWidened && batch(p) * p.m * p.n > 1) {
    Product first = p, second = p;
    Index in_a = 0, in_b = 0, in_bias = 0, in_c = 0;
    if (p.outer > 1) {
      first.outer = p.outer / 2;
      second.outer -= first.outer;
      in_a = first.outer * p.a.outer_stride;
      in_b = first.outer * p.b.outer_stride;
      in_c = first.outer * p.c.outer_stride;
    } else if (p.inner > 1) {
      first.inner = p.inner / 2;
      second.inner -= first.inner;
      in_a = first.inner * p.a.inner_stride;
      in_b = first.inner * p.b.inner_stride;
      in_c = first.inner * p.c.inner_stride;
    } else if (p.m >= p.n) {
      first.m = p.m / 2;
      second.m -= first.m;
      in_a = first.m * (p.a.transposed ? 1 : p.a.leading);
      in_c = first.m * p.c.leading;
    } else {
      first.n = p.n / 2;
      second.n -= first.n;
      in_b = first.n * (p.b.transposed ? p.b.leading : 1);
      in_c = in_bias = first.n;
    }
    widened_product(first, a, b, bias, c);
    widened_product(second, a + in_a, b + in_b, bias + in_bias, c + in_c);
    return;
  }

  const Dense dense_a(p.a, p.m, p.k), dense_b(p.b, p.k, p.n), dense_c(p.c, p.m, p.n);
  Buffer buffer = workspace(elements_widened(p));
  float* wide_a = buffer.floats();
  float* wide_b = wide_a + batch(p) * dense_a.size();
  float* wide_c = wide_b + batch(p) * dense_b.size();
  float* wide_bias = wide_c + batch(p) * dense_c.size();
  widen_operand(p, p.a, dense_a, a, wide_a);
  widen_operand(p, p.b, dense_b, b, wide_b);
  if (p.bias) widen(bias, p.n, wide_bias);

  Product dense = p;
  dense.a = dense_a.operand(p.a, p.inner);
  dense.b = dense_b.operand(p.b, p.inner);
  dense.c = dense_c.operand(p.c, p.inner);
  onednn_product(dense, wide_a, wide_b, p.bias ? ConstValues(wide_bias) : ConstValues(), wide_c);
  for_each_matrix(p, p.c, [&](Index number, Index begin) {
    for (Index row = 0; row < p.m; ++row) {
      store(wide_c + number * dense_c.size() + row * p.n, p.n, c + (begin + row * p.c.leading));
    }
  });
}

}  // namespace zerolab
