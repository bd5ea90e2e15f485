#include "stages/partition/layout.hpp"

#include <fmt/format.h>

#include <set>
#include <vector>

#include "tests/support/catch.hpp"

using namespace zerolab;

namespace {

constexpr Index kMostElements = 70;
constexpr int kMostRanks = 9;

// Reference: says for every element which rank has it, by walking element by element.
int flat_owner(Index position, Index padded, int ranks) {
  int owner = 0;
  Index left = padded / ranks;
  for (Index i = 0; i < position; ++i) {
    if (--left == 0) {
      ++owner;
      left = padded / ranks;
    }
  }
  return owner;
}

}  // namespace

TEST_CASE("pieces cover every parameter exactly once, equal in size, padding behind the end") {
  std::vector<std::string> wrong;
  for (Index numel = 0; numel <= kMostElements; ++numel) {
    for (int ranks = 1; ranks <= kMostRanks; ++ranks) {
      const PieceLayout pieces{numel, ranks};
      Index smallest = 0;
      while (smallest * ranks < numel) ++smallest;
      std::vector<int> owners(static_cast<std::size_t>(numel), 0);
      for (int rank = 0; rank < ranks; ++rank) {
        const Range owned = pieces.owned(rank);
        if (owned.size() < 0 || owned.size() > smallest) wrong.push_back("size");
        for (Index i = owned.begin; i < owned.end; ++i) ++owners[static_cast<std::size_t>(i)];
        const bool starts_where_bounds_say =
            owned.size() == 0 || owned.begin == pieces.bounds()[static_cast<std::size_t>(rank)];
        if (!starts_where_bounds_say) wrong.push_back("bounds");
      }
      for (const int count : owners) {
        if (count != 1) wrong.push_back(fmt::format("numel {} ranks {}", numel, ranks));
      }
      if (pieces.piece_size() != smallest) wrong.push_back("piece size");
      if (pieces.bounds().back() != smallest * ranks) wrong.push_back("padded");
    }
  }
  CHECK(wrong == std::vector<std::string>{});
}

TEST_CASE("5 elements over 4 ranks are 2, 2, 1 and 0") {
  const PieceLayout pieces{5, 4};
  CHECK(pieces.owned(0) == Range{0, 2});
  CHECK(pieces.owned(1) == Range{2, 4});
  CHECK(pieces.owned(2) == Range{4, 5});
  CHECK(pieces.owned(3).size() == 0);
}

TEST_CASE("the flat layout pads to the next multiple of twice the ranks and cuts equal slices") {
  std::vector<std::string> wrong;
  for (Index numel = 0; numel <= kMostElements; ++numel) {
    for (int ranks = 1; ranks <= kMostRanks; ++ranks) {
      // three parameters of uneven size, one of them empty
      const std::vector<Index> sizes{numel / 3, 0, numel - numel / 3};
      const FlatLayout layout(sizes, ranks);
      const Index padded = layout.padded();
      const bool least = padded >= numel && padded < numel + 2 * ranks && padded % (2 * ranks) == 0;
      if (!least) wrong.push_back(fmt::format("padded {} of {} on {}", padded, numel, ranks));

      // slice bounds agree with the element by element reference, over ranges that cover the buffer
      std::vector<Index> sent_to(static_cast<std::size_t>(ranks), 0);
      std::vector<Index> even(static_cast<std::size_t>(ranks), 0);
      Index covered = 0;
      for (Index i = 0; i < 3; ++i) {
        const Range range = layout.padded_parameter(i);
        if (range.begin != covered) wrong.push_back("gap");
        covered = range.end;
        const std::vector<Index> bounds = layout.slice_bounds(range);
        const std::vector<Index> evenly = layout.even_bounds(range);
        if (bounds.front() != 0 || bounds.back() != range.size()) wrong.push_back("slice bounds");
        if (evenly.front() != 0 || evenly.back() != range.size()) wrong.push_back("even bounds");
        for (int rank = 0; rank < ranks; ++rank) {
          const auto r = static_cast<std::size_t>(rank);
          for (Index at = bounds[r]; at < bounds[r + 1]; ++at) {
            if (flat_owner(range.begin + at, padded, ranks) != rank) wrong.push_back("owner");
          }
          const Index part = evenly[r + 1] - evenly[r];
          if (part < range.size() / ranks || part > ceil_div(range.size(), ranks)) {
            wrong.push_back("uneven");
          }
          sent_to[r] += bounds[r + 1] - bounds[r];
          even[r] += part;
        }
      }
      if (covered != padded) wrong.push_back("cover");
      for (int rank = 0; rank < ranks; ++rank) {
        const auto r = static_cast<std::size_t>(rank);
        if (sent_to[r] != padded / ranks || even[r] != padded / ranks) wrong.push_back("share");
      }
    }
  }
  CHECK(wrong == std::vector<std::string>{});
}

TEST_CASE("intersections of ranges that do not meet are empty") {
  CHECK(intersect({0, 5}, {3, 9}) == Range{3, 5});
  CHECK(intersect({0, 3}, {5, 9}).size() == 0);
  CHECK(intersect({5, 9}, {0, 3}).size() == 0);
  CHECK(intersect({4, 4}, {0, 9}).size() == 0);
}
