#pragma once

#include <string>
#include <vector>

#include "stages/engine/states.hpp"

namespace zerolab {

/// The piece layout of every parameter of a model, and where a rank's pieces lie end to end.
class Pieces {
 public:
  Pieces() = default;
  Pieces(const std::vector<Index>& sizes, int ranks);

  const PieceLayout& of(const Parameter& parameter) const {
    return pieces_[static_cast<std::size_t>(parameter.id())];
  }
  Index offset(const Parameter& parameter) const {
    return offsets_[static_cast<std::size_t>(parameter.id())];
  }
  /// Elements of all pieces of one rank, with padding.
  Index per_rank() const { return offsets_.back(); }

 private:
  std::vector<PieceLayout> pieces_;
  std::vector<Index> offsets_{0};
};

/// This rank's pieces of one kind of model state. Zero-filled, so that padding is zero.
class PieceBuffer {
 public:
  PieceBuffer() = default;
  PieceBuffer(Runtime& runtime, const Pieces& pieces, Dtype dtype, Category category,
              std::string owner);

  Values of(const Parameter& parameter) const {
    return buffer_.values(dtype_) + pieces_->offset(parameter);
  }

 private:
  const Pieces* pieces_ = nullptr;
  Dtype dtype_ = Dtype::fp32;
  Buffer buffer_;
};

using PieceOptimizer = OptimizerStates<PieceBuffer>;

}  // namespace zerolab
