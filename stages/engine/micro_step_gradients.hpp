#pragma once

#include <map>
#include <optional>

#include "stages/engine/reduce_bucket.hpp"
#include "stages/engine/states.hpp"

namespace zerolab {

/// Gradients of one micro-step, each in a buffer of its own from its first contribution until it is
/// reduced, or added to what is kept.
class HeldGradients {
 public:
  explicit HeldGradients(Runtime& runtime) : runtime_(runtime) {}

  /// Room for `elements` of it; the padding behind numel() is zero.
  Values hold(const Parameter& parameter, Index elements);
  /// It is complete: `elements` of it, as held.
  ReadyGradient take(Parameter& parameter, MicroStep micro_step);

 private:
  struct Held {
    Buffer buffer;
    Index elements = 0;
  };
  Runtime& runtime_;
  std::map<Index, Held> held_;  // by parameter id
};

/// Gradients of stages 0 and 1, which every rank keeps whole: the micro-steps are added up on the
/// rank and reduced once, or, with `reduce_every_micro_step`, each is reduced by itself as in the
/// other stages.
class LocalSums {
 public:
  explicit LocalSums(Runtime& runtime) : runtime_(runtime), held_(runtime) {}
  /// `sums` is where they are kept, padded as `layout` says; both outlive this.
  void set_up(const FlatLayout& layout, const FlatBuffer& sums);

  /// Where the gradient of this micro-step is written.
  Values buffer(const Parameter& parameter, MicroStep micro_step);
  /// It is complete there: what is to be reduced now, if anything is.
  std::optional<ReadyGradient> ready(Parameter& parameter, MicroStep micro_step);

 private:
  bool in_place(MicroStep micro_step) const;
  bool reduces_each() const { return runtime_.settings.zero.reduce_every_micro_step; }

  Runtime& runtime_;
  const FlatLayout* layout_ = nullptr;
  const FlatBuffer* sums_ = nullptr;
  HeldGradients held_;
};

}  // namespace zerolab
