#pragma once

#include <string>
#include <vector>

#include "stages/engine/stage.hpp"

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
  PieceBuffer(Runtime& runtime, const Pieces& pieces, Category category, std::string owner);

  float* of(const Parameter& parameter) const {
    return buffer_.floats() + pieces_->offset(parameter);
  }

 private:
  const Pieces* pieces_ = nullptr;
  Buffer buffer_;
};

}  // namespace zerolab
