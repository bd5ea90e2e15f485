#pragma once

#include <vector>

#include "stages/base/types.hpp"

namespace zerolab {

// Who owns what, as pure arithmetic. There are two layouts.
//
// Flat (stages 0 to 2): all parameters end to end, zero-padded to a multiple of 2N elements, cut in
// N equal slices. Parameters straddle ranks:
//
//     parameters   |---- a ----|- b -|------- c -------|
//     flat buffer  |     rank 0    |     rank 1    |  rank 2   pad|
//
// Pieces (stage 3): every parameter by itself, zero-padded to a multiple of N elements, cut in N
// equal pieces. Trailing ranks may own padding only:
//
//     a, 5 elements, 4 ranks   |a0 a1|a2 a3|a4 --|-- --|

/// Elements [begin, end).
struct Range {
  Index begin = 0;
  Index end = 0;

  Index size() const { return end - begin; }
  bool operator==(const Range&) const = default;
};

/// The common part; empty ranges have begin == end.
Range intersect(Range a, Range b);

/// The flat layout of parameters with these sizes over `ranks` ranks.
class FlatLayout {
 public:
  FlatLayout() = default;
  FlatLayout(const std::vector<Index>& sizes, int ranks);

  int ranks() const { return ranks_; }
  Index total() const { return begins_.back(); }
  Index padded() const { return round_up(total(), 2 * Index{ranks_}); }
  Index slice_size() const { return padded() / ranks_; }
  Range slice(int rank) const { return {rank * slice_size(), (rank + 1) * slice_size()}; }

  /// Elements of parameter i in the flat buffer.
  Range parameter(Index i) const { return {begins_[index(i)], begins_[index(i) + 1]}; }
  /// The same, and for the last parameter that has elements also the padding behind it: these
  /// ranges cover the whole buffer, so every padded element travels exactly once.
  Range padded_parameter(Index i) const;

  /// Where the slices cut [range.begin, range.end), relative to its begin: N + 1 bounds.
  std::vector<Index> slice_bounds(Range range) const;

  /// Cuts the range in N nearly equal parts (relative bounds), so that over ranges that cover the
  /// padded buffer every rank's parts add up to exactly slice_size(): rank r gets as many elements
  /// as there are positions p with p mod N == r.
  std::vector<Index> even_bounds(Range range) const;

 private:
  static std::size_t index(Index i) { return static_cast<std::size_t>(i); }

  std::vector<Index> begins_{0};  // one more than there are parameters
  int ranks_ = 1;
};

/// The piece layout of one parameter of `numel` elements over `ranks` ranks.
struct PieceLayout {
  Index numel = 0;
  int ranks = 1;

  Index piece_size() const { return ceil_div(numel, ranks); }
  Index padded() const { return piece_size() * ranks; }
  /// The elements of the parameter in rank's piece, without padding; may be empty.
  Range owned(int rank) const;
  /// N + 1 bounds of the padded pieces.
  std::vector<Index> bounds() const;
};

}  // namespace zerolab
