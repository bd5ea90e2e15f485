#include "lab/bench/bare_products.hpp"

#include "stages/device/cpu/onednn.hpp"

// From the OpenMP runtime that oneDNN is linked with.
extern "C" void omp_set_num_threads(int);

namespace zerolab::bench {
namespace {

using Dims = dnnl::memory::dims;

onednn::Layout matrix(Index rows, Index columns, const Operand& operand) {
  const Dims strides = operand.transposed ? Dims{1, operand.leading} : Dims{operand.leading, 1};
  return {Dims{rows, columns}, dnnl::memory::data_type::f32, strides};
}

onednn::Layout any_layout(Index rows, Index columns) {
  return {Dims{rows, columns}, dnnl::memory::data_type::f32, dnnl::memory::format_tag::any};
}

}  // namespace

BareProducts::BareProducts(const Product& p, const float* a, const float* b, const float* bias,
                           float* c)
    : engine_(dnnl::engine::kind::cpu, 0), stream_(engine_) {
  omp_set_num_threads(1);  // as CpuDevice does
  onednn::Context context{engine_, {}};
  context.attributes.set_fpmath_mode(dnnl::fpmath_mode::strict);
  const onednn::Layout bias_row(Dims{1, p.n}, dnnl::memory::data_type::f32, Dims{p.n, 1});
  const onednn::Layout a_lies = matrix(p.m, p.k, p.a);
  const onednn::Layout b_lies = matrix(p.k, p.n, p.b);
  const onednn::Layout c_lies = matrix(p.m, p.n, p.c);
  const auto describe = [&](const onednn::Layout& a_layout, const onednn::Layout& b_layout) {
    return bias != nullptr ? onednn::matmul(context, a_layout, b_layout, bias_row, c_lies)
                           : onednn::matmul(context, a_layout, b_layout, c_lies);
  };
  const auto in_place = [&](const onednn::Layout& layout, const float* data) {
    return dnnl::memory(layout, engine_, const_cast<float*>(data));
  };
  const auto make = [&](const onednn::Descriptor& descriptor, dnnl::memory a_memory,
                        dnnl::memory b_memory) {
    Call call{dnnl::primitive(descriptor.get()),
              {{DNNL_ARG_SRC, std::move(a_memory)},
               {DNNL_ARG_WEIGHTS, std::move(b_memory)},
               {DNNL_ARG_DST, in_place(c_lies, c)}}};
    if (bias != nullptr) call.arguments.emplace(DNNL_ARG_BIAS, in_place(bias_row, bias));
    return call;
  };

  const dnnl::memory a_memory = in_place(a_lies, a);
  const dnnl::memory b_memory = in_place(b_lies, b);
  as_it_lies_ = make(describe(a_lies, b_lies), a_memory, b_memory);
  const onednn::Descriptor best = describe(any_layout(p.m, p.k), any_layout(p.k, p.n));
  packed_ = make(best, packed_copy(a_memory, best.query_md(dnnl::query::src_md, 0)),
                 packed_copy(b_memory, best.query_md(dnnl::query::weights_md, 0)));
}

dnnl::memory BareProducts::packed_copy(const dnnl::memory& from, const dnnl::memory::desc& layout) {
  dnnl::memory copy(layout, engine_);
  dnnl::memory source = from;
  dnnl::reorder(source, copy).execute(stream_, source, copy);
  stream_.wait();
  return copy;
}

void BareProducts::run(const Call& call) const {
  call.primitive.execute(stream_, call.arguments);
  stream_.wait();
}

}  // namespace zerolab::bench
