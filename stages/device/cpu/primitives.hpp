#pragma once

#include <initializer_list>
#include <map>
#include <unordered_map>

#include "stages/device/cpu/calls.hpp"
#include "stages/memory/ledger.hpp"

namespace zerolab {

/// Runs oneDNN calls, keeping the primitive of every call it has seen. For one thread at a time.
class Primitives {
 public:
  /// `ledger` must outlive this.
  Primitives(Ledger& ledger, int threads);

  /// A tensor of a call: its DNNL_ARG_ name and where it is now. oneDNN does not write what the
  /// primitive only reads.
  struct Argument {
    int name;
    const void* data;
  };

  /// Computes, and returns when it is done. The scratchpad is taken from the ledger meanwhile:
  /// throws OutOfMemory.
  void run(const Call& call, std::initializer_list<Argument> arguments);

  int threads() const { return threads_; }

 private:
  // The memory objects stay and only change their address: making them costs more than a small
  // layer norm.
  struct Prepared {
    dnnl::primitive primitive;
    std::unordered_map<int, dnnl::memory> arguments;
    Index scratchpad_bytes = 0;
  };

  Prepared prepare(const Call& call, std::initializer_list<Argument> arguments) const;

  Ledger& ledger_;
  int threads_;
  onednn::Context context_;
  dnnl::stream stream_;
  std::map<Call, Prepared> prepared_;
};

}  // namespace zerolab
