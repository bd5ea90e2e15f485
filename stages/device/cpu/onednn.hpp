#pragma once

// oneDNN 2.x describes an operation first and makes a primitive descriptor of it; 3.x makes the
// descriptor at once. Everything that differs between them is in this file.

#include <oneapi/dnnl/dnnl.hpp>
#include <string>

namespace zerolab::onednn {

using Descriptor = dnnl::primitive_desc_base;
using Layout = dnnl::memory::desc;

/// What every primitive is made with.
struct Context {
  dnnl::engine engine;
  dnnl::primitive_attr attributes;
};

inline dnnl::normalization_flags scale_and_shift() {
  return dnnl::normalization_flags::use_scale | dnnl::normalization_flags::use_shift;
}

#if DNNL_VERSION_MAJOR >= 3

inline Descriptor matmul(const Context& s, const Layout& a, const Layout& b, const Layout& c) {
  return dnnl::matmul::primitive_desc(s.engine, a, b, c, s.attributes);
}

inline Descriptor matmul(const Context& s, const Layout& a, const Layout& b, const Layout& bias,
                         const Layout& c) {
  return dnnl::matmul::primitive_desc(s.engine, a, b, bias, c, s.attributes);
}

inline auto layer_norm(const Context& s, const Layout& x, float epsilon) {
  return dnnl::layer_normalization_forward::primitive_desc(
      s.engine, dnnl::prop_kind::forward_training, x, x, epsilon, scale_and_shift(), s.attributes);
}

inline Descriptor layer_norm_backward(const Context& s, const Layout& x, float epsilon) {
  return dnnl::layer_normalization_backward::primitive_desc(
      s.engine, dnnl::prop_kind::backward, x, x, x, epsilon, scale_and_shift(),
      layer_norm(s, x, epsilon), s.attributes);
}

inline Descriptor softmax(const Context& s, const Layout& x, int axis) {
  return dnnl::softmax_forward::primitive_desc(s.engine, dnnl::prop_kind::forward_training,
                                               dnnl::algorithm::softmax_accurate, x, x, axis,
                                               s.attributes);
}

inline Descriptor log_softmax(const Context& s, const Layout& x, int axis) {
  return dnnl::softmax_forward::primitive_desc(s.engine, dnnl::prop_kind::forward_training,
                                               dnnl::algorithm::softmax_log, x, x, axis,
                                               s.attributes);
}

inline Descriptor eltwise(const Context& s, dnnl::algorithm function, const Layout& x) {
  return dnnl::eltwise_forward::primitive_desc(s.engine, dnnl::prop_kind::forward_training,
                                               function, x, x, 0.0F, 0.0F, s.attributes);
}

#else

inline Descriptor matmul(const Context& s, const Layout& a, const Layout& b, const Layout& c) {
  return dnnl::matmul::primitive_desc({a, b, c}, s.attributes, s.engine);
}

inline Descriptor matmul(const Context& s, const Layout& a, const Layout& b, const Layout& bias,
                         const Layout& c) {
  return dnnl::matmul::primitive_desc({a, b, bias, c}, s.attributes, s.engine);
}

inline auto layer_norm(const Context& s, const Layout& x, float epsilon) {
  return dnnl::layer_normalization_forward::primitive_desc(
      {dnnl::prop_kind::forward_training, x, epsilon, scale_and_shift()}, s.attributes, s.engine);
}

inline Descriptor layer_norm_backward(const Context& s, const Layout& x, float epsilon) {
  return dnnl::layer_normalization_backward::primitive_desc(
      {dnnl::prop_kind::backward, x, x, epsilon, scale_and_shift()}, s.attributes, s.engine,
      layer_norm(s, x, epsilon));
}

inline Descriptor softmax(const Context& s, const Layout& x, int axis) {
  return dnnl::softmax_forward::primitive_desc({dnnl::prop_kind::forward_training, x, axis},
                                               s.attributes, s.engine);
}

inline Descriptor log_softmax(const Context& s, const Layout& x, int axis) {
  return dnnl::logsoftmax_forward::primitive_desc({dnnl::prop_kind::forward_training, x, axis},
                                                  s.attributes, s.engine);
}

inline Descriptor eltwise(const Context& s, dnnl::algorithm function, const Layout& x) {
  return dnnl::eltwise_forward::primitive_desc(
      {dnnl::prop_kind::forward_training, function, x, 0.0F, 0.0F}, s.attributes, s.engine);
}

#endif

/// The library that is loaded, which may be newer than the headers.
inline std::string version() {
  const dnnl_version_t* v = dnnl_version();
  return std::to_string(v->major) + "." + std::to_string(v->minor) + "." + std::to_string(v->patch);
}

/// Whether primitives are generated for this instruction set, or one that extends it.
inline bool has(dnnl_cpu_isa_t all) {
  const auto bits = static_cast<unsigned>(all);
  return (static_cast<unsigned>(dnnl_get_effective_cpu_isa()) & bits) == bits;
}

/// Whether the processor has instructions that multiply bf16.
inline bool multiplies_bf16() { return has(dnnl_cpu_isa_avx512_core_bf16); }

/// The instruction set that the primitives are generated for. Families that only one of the two
/// versions knows are told as what they extend, so that every name here exists in both.
inline std::string instruction_set() {
  if (has(dnnl_cpu_isa_avx512_core_amx)) return "avx512_core_amx";
  if (has(dnnl_cpu_isa_avx512_core_bf16)) return "avx512_core_bf16";
  if (has(dnnl_cpu_isa_avx512_core_vnni)) return "avx512_core_vnni";
  if (has(dnnl_cpu_isa_avx512_core)) return "avx512_core";
  if (has(dnnl_cpu_isa_avx2_vnni)) return "avx2_vnni";
  if (has(dnnl_cpu_isa_avx2)) return "avx2";
  if (has(dnnl_cpu_isa_avx)) return "avx";
  return "sse41";
}

}  // namespace zerolab::onednn
