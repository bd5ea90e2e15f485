#include "stages/partition/layout.hpp"

#include <algorithm>

namespace zerolab {

Range intersect(Range a, Range b) {
  const Index begin = std::max(a.begin, b.begin);
  return {begin, std::max(begin, std::min(a.end, b.end))};
}

FlatLayout::FlatLayout(const std::vector<Index>& sizes, int ranks) : ranks_(ranks) {
  for (const Index size : sizes) begins_.push_back(begins_.back() + size);
}

Range FlatLayout::padded_parameter(Index i) const {
  Range range = parameter(i);
  if (range.size() > 0 && range.end == total()) range.end = padded();
  return range;
}

std::vector<Index> FlatLayout::slice_bounds(Range range) const {
  std::vector<Index> bounds;
  for (int rank = 0; rank <= ranks_; ++rank) {
    bounds.push_back(std::clamp(rank * slice_size(), range.begin, range.end) - range.begin);
  }
  return bounds;
}

std::vector<Index> FlatLayout::even_bounds(Range range) const {
  // positions p < end with p mod N == rank
  const auto below = [this](Index end, int rank) {
    return (end + Index{ranks_} - 1 - rank) / ranks_;
  };
  std::vector<Index> bounds{0};
  for (int rank = 0; rank < ranks_; ++rank) {
    bounds.push_back(bounds.back() + below(range.end, rank) - below(range.begin, rank));
  }
  return bounds;
}

Range PieceLayout::owned(int rank) const {
  return intersect({0, numel}, {rank * piece_size(), (rank + 1) * piece_size()});
}

std::vector<Index> PieceLayout::bounds() const {
  std::vector<Index> bounds;
  for (int rank = 0; rank <= ranks; ++rank) bounds.push_back(rank * piece_size());
  return bounds;
}

}  // namespace zerolab
