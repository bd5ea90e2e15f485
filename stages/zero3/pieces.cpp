#include "stages/zero3/pieces.hpp"

#include <utility>

namespace zerolab {

Pieces::Pieces(const std::vector<Index>& sizes, int ranks) {
  for (const Index size : sizes) {
    pieces_.push_back({size, ranks});
    offsets_.push_back(offsets_.back() + pieces_.back().piece_size());
  }
}

PieceBuffer::PieceBuffer(Runtime& runtime, const Pieces& pieces, Dtype dtype, Category category,
                         std::string owner)
    : pieces_(&pieces),
      dtype_(dtype),
      buffer_(runtime.ledger.allocate(pieces.per_rank() * size_of(dtype), category,
                                      std::move(owner), runtime.model_states)) {
  runtime.device.fill(buffer_.values(dtype), pieces.per_rank(), 0);
}

}  // namespace zerolab
