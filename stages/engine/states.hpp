#pragma once

#include <array>
#include <string>
#include <vector>

#include "stages/engine/stage.hpp"

namespace zerolab {

/// Elements `range` of the flat buffer (partition/layout.hpp) of one kind of model state: the whole
/// of it, or a rank's slice. Zero-filled, so that padding is zero.
class FlatBuffer {
 public:
  FlatBuffer() = default;
  FlatBuffer(Runtime& runtime, Range range, Category category, std::string owner);

  /// The element at this position of the whole flat buffer.
  float* at(Index position) const { return buffer_.floats() + (position - range_.begin); }

 private:
  Buffer buffer_;
  Range range_;
};

/// The optimizer's moments for a range of the flat buffer; as many as the optimizer needs.
std::vector<FlatBuffer> flat_moments(Runtime& runtime, Range range);

/// The slices of every parameter inside `owned`.
std::vector<OwnedSlice> flat_slices(ParameterSet& parameters, const FlatLayout& layout, Range owned,
                                    const FlatBuffer& gradients, const FlatBuffer& masters,
                                    const std::vector<FlatBuffer>& moments);

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
void initialise(Runtime& runtime, const Parameter& parameter, Range range, float* out);

/// Initialises every trainable parameter whole inside the flat buffer, binds it there and makes it
/// AVAILABLE.
void initialise_whole(Runtime& runtime, ParameterSet& parameters, const FlatLayout& layout,
                      const FlatBuffer& buffer);

/// "a", or "a .. c (3 parameters)": whose data a collective moves, for the log and for messages.
std::string names_of(const std::vector<Parameter*>& parameters);

/// A gradient held outside of any storage, for as long as one parameter needs it: `elements` of it,
/// the padding behind numel() zero.
Buffer hold_gradient(Runtime& runtime, const Parameter& parameter, Index elements);

/// The reduced part of a gradient is added to what earlier micro-steps left in `kept`; the first
/// micro-step replaces it.
void accumulate(Runtime& runtime, MicroStep micro_step, const float* reduced, float* kept, Index n);

}  // namespace zerolab
