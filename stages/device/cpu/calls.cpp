#include "stages/device/cpu/calls.hpp"

namespace zerolab {
namespace {

dnnl::memory::data_type type_of(Dtype dtype) {
  return dtype == Dtype::bf16 ? dnnl::memory::data_type::bf16 : dnnl::memory::data_type::f32;
}

// An operand with only the batch dimensions that there are: oneDNN has its fast paths for few.
// A stride of zero is one matrix that every product of the batch uses.
onednn::Layout matrix(const ProductCall& call, const Operand& operand, Index rows, Index columns) {
  const Product& product = call.product;
  dnnl::memory::dims sizes, strides;
  const auto add = [&](Index size, Index stride) {
    sizes.push_back(size);
    strides.push_back(stride);
  };
  const auto add_batch = [&](Index count, Index stride) {
    if (count != 1) add(stride == 0 ? 1 : count, stride == 0 ? rows * columns : stride);
  };
  add_batch(product.outer, operand.outer_stride);
  add_batch(product.inner, operand.inner_stride);
  add(rows, operand.transposed ? 1 : operand.leading);
  add(columns, operand.transposed ? operand.leading : 1);
  return onednn::Layout(sizes, type_of(call.dtype), strides);
}

// One bias for every row of every product: sizes of 1 in front of n.
onednn::Layout bias_row(const ProductCall& call) {
  const Product& product = call.product;
  const std::size_t dimensions =
      2U + (product.outer != 1 ? 1U : 0U) + (product.inner != 1 ? 1U : 0U);
  dnnl::memory::dims sizes(dimensions, 1), strides(dimensions, product.n);
  sizes.back() = product.n;
  strides.back() = 1;
  return onednn::Layout(sizes, type_of(call.dtype), strides);
}

onednn::Descriptor describe_product(const ProductCall& call, const onednn::Context& context) {
  const Product& p = call.product;
  const onednn::Layout a = matrix(call, p.a, p.m, p.k);
  const onednn::Layout b = matrix(call, p.b, p.k, p.n);
  const onednn::Layout c = matrix(call, p.c, p.m, p.n);
  return p.bias ? onednn::matmul(context, a, b, bias_row(call), c)
                : onednn::matmul(context, a, b, c);
}

onednn::Descriptor describe_rows(const RowCall& call, const onednn::Context& context) {
  const onednn::Layout x({call.rows, call.width}, dnnl::memory::data_type::f32,
                         dnnl::memory::format_tag::ab);
  constexpr int kAxis = 1;
  switch (call.operation) {
    case RowOperation::layer_norm:
      return onednn::layer_norm(context, x, call.epsilon);
    case RowOperation::layer_norm_backward:
      return onednn::layer_norm_backward(context, x, call.epsilon);
    case RowOperation::softmax:
      return onednn::softmax(context, x, kAxis);
    case RowOperation::log_softmax:
      return onednn::log_softmax(context, x, kAxis);
    case RowOperation::logistic:
      return onednn::eltwise(context, dnnl::algorithm::eltwise_logistic, x);
    case RowOperation::exponential:
      return onednn::eltwise(context, dnnl::algorithm::eltwise_exp, x);
  }
  return {};
}

}  // namespace

std::string_view name_of(const Call& call) {
  const auto* rows = std::get_if<RowCall>(&call);
  if (rows == nullptr) return "matmul";
  switch (rows->operation) {
    case RowOperation::layer_norm:
      return "layer norm";
    case RowOperation::layer_norm_backward:
      return "layer norm backward";
    case RowOperation::softmax:
      return "softmax";
    case RowOperation::log_softmax:
      return "log softmax";
    case RowOperation::logistic:
      return "logistic";
    case RowOperation::exponential:
      return "exponential";
  }
  return "?";
}

onednn::Descriptor describe(const Call& call, const onednn::Context& context) {
  if (const auto* product = std::get_if<ProductCall>(&call))
    return describe_product(*product, context);
  return describe_rows(std::get<RowCall>(call), context);
}

}  // namespace zerolab
