#pragma once

#include <oneapi/dnnl/dnnl.hpp>
#include <unordered_map>

#include "stages/device/device.hpp"

namespace zerolab::bench {

/// One product as oneDNN alone computes it, with nothing of ours around it: primitives, memory
/// objects and scratchpads are made once, and a call is one execute.
class BareProducts {
 public:
  /// A single product (no batch) over these matrices, which must outlive this.
  BareProducts(const Product& product, const float* a, const float* b, const float* bias, float* c);

  /// With the matrices where and how they lie.
  void as_it_lies() const { run(as_it_lies_); }
  /// With both operands in the layouts that oneDNN likes best, packed into them beforehand: what a
  /// product would cost if packing were free.
  void packed() const { run(packed_); }

 private:
  struct Call {
    dnnl::primitive primitive;
    std::unordered_map<int, dnnl::memory> arguments;
  };

  dnnl::memory packed_copy(const dnnl::memory& from, const dnnl::memory::desc& layout);
  void run(const Call& call) const;

  dnnl::engine engine_;
  mutable dnnl::stream stream_;
  Call as_it_lies_, packed_;
};

}  // namespace zerolab::bench
