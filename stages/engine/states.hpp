#pragma once

#include <fmt/format.h>

#include <optional>
#include <string>
#include <vector>

#include "stages/engine/stage.hpp"
#include "stages/optim/optimizer.hpp"

namespace zerolab {

/// Elements `range` of the flat buffer (partition/layout.hpp) of one kind of model state: the whole
/// of it, or a rank's slice. Zero-filled, so that padding is zero.
class FlatBuffer {
 public:
  FlatBuffer() = default;
  FlatBuffer(Runtime& runtime, Range range, Dtype dtype, Category category, std::string owner);

  /// The element at this position of the whole flat buffer.
  Values at(Index position) const { return buffer_.values(dtype_) + (position - range_.begin); }

 private:
  Buffer buffer_;
  Range range_;
  Dtype dtype_ = Dtype::fp32;
};

/// What the optimizer keeps for the elements of a buffer like the weights', all of it fp32: as many
/// moments as it needs, and the master weights where those of the model have 16 bits.
template <typename StateBuffer>
class OptimizerStates {
 public:
  OptimizerStates() = default;
  /// `place`: of which elements, as the buffer's own constructor takes it.
  template <typename Place>
  OptimizerStates(Runtime& runtime, const Place& place) {
    const auto add = [&](const std::string& what) {
      return StateBuffer(runtime, place, Dtype::fp32, Category::optimizer, what);
    };
    if (runtime.settings.dtype != Dtype::fp32) masters_ = add("master weights");
    for (int i = 1; i <= moments_needed(runtime.settings.optimizer); ++i) {
      moments_.push_back(add(fmt::format("moment {}", i)));
    }
  }

  /// Gives a slice its master and moments; `at(buffer)` is where they are in one of the buffers.
  template <typename At>
  void give(OwnedSlice& slice, const StateBuffer& weights, At at) const {
    slice.master = at(masters_ ? *masters_ : weights);
    for (std::size_t i = 0; i < moments_.size(); ++i) slice.moments[i] = at(moments_[i]);
  }

 private:
  std::optional<StateBuffer> masters_;
  std::vector<StateBuffer> moments_;
};
using FlatOptimizer = OptimizerStates<FlatBuffer>;

/// The slices of every parameter inside `owned`.
std::vector<OwnedSlice> flat_slices(ParameterSet& parameters, const FlatLayout& layout, Range owned,
                                    const FlatBuffer& weights, const FlatBuffer& gradients,
                                    const FlatOptimizer& optimizer);

/// The frozen parameters in stages 0 to 2: whole on every rank, and nothing beside them.
class FrozenParameters {
 public:
  /// Initialises them and makes them AVAILABLE.
  void set_up(Runtime& runtime, ParameterSet& parameters);

  /// All of them; a rank's equal share.
  std::vector<OwnedSlice> slices() const;
  std::vector<OwnedSlice> share(const Runtime& runtime) const;

 private:
  ParameterSet* parameters_ = nullptr;
  Buffer buffer_;
};

std::vector<OwnedSlice> joined(std::vector<OwnedSlice> slices, const std::vector<OwnedSlice>& more);

/// Writes the initial value of elements `range` of a parameter to `out`.
void initialise(Runtime& runtime, const Parameter& parameter, Range range, Values out);

/// Initialises every trainable parameter whole inside the flat buffer, binds it there and makes it
/// AVAILABLE.
void initialise_whole(Runtime& runtime, ParameterSet& parameters, const FlatLayout& layout,
                      const FlatBuffer& buffer);

/// Initialises the master weights of these slices, where there are any beside the weights: they are
/// what the initial weights are rounded from.
void initialise_masters(Runtime& runtime, const std::vector<OwnedSlice>& slices);

/// "a", or "a .. c (3 parameters)": whose data a collective moves, for the log and for messages.
std::string names_of(const std::vector<Parameter*>& parameters);

/// A copy of values as floats in host memory.
std::vector<float> floats_on_host(Runtime& runtime, ConstValues values, Index n);

/// Adds the reduced part of a gradient to what earlier micro-steps left in `kept`; the first
/// micro-step replaces it. Nothing happens where both are the same memory.
void accumulate(Runtime& runtime, MicroStep micro_step, ConstValues reduced, Values kept, Index n);

}  // namespace zerolab
