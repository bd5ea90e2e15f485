#include "stages/optim/owned_slice.hpp"

#include <map>
#include <utility>

#include "tests/support/catch.hpp"

namespace zerolab {
namespace {

/// Slices of parameters with odd sizes, the first of which begins inside its parameter. Every
/// array's element p stands at position p, so that a pointer says which element it is at.
struct Bench {
  std::vector<Parameter> parameters;
  std::vector<float> weights, gradient, master, moment1, moment2;
  std::vector<OwnedSlice> slices;

  explicit Bench(int moments) {
    const std::vector<Index> sizes{5, 1, 33, 3, 1, 64, 7};
    parameters.reserve(sizes.size());
    Index total = 0;
    for (const Index size : sizes) total += size;
    for (std::vector<float>* array : {&weights, &gradient, &master, &moment1, &moment2}) {
      array->resize(static_cast<std::size_t>(total));
    }
    Index position = 0;
    for (const Index size : sizes) {
      const auto id = static_cast<Index>(parameters.size());
      const Index begin = id == 0 ? 2 : 0;
      parameters.emplace_back("p", id, Shape{begin + size}, Initial::zeros());
      slices.push_back({&parameters.back(),
                        {begin, begin + size},
                        weights.data() + position,
                        gradient.data() + position,
                        master.data() + position,
                        {moments > 0 ? moment1.data() + position : nullptr,
                         moments > 1 ? moment2.data() + position : nullptr}});
      position += size;
    }
  }
};

TEST_CASE("the shares of all ranks cover every element once, with all its pointers", "[optim]") {
  for (const int moments : {0, 1, 2}) {
    Bench bench(moments);
    const auto total = static_cast<Index>(bench.master.size());
    // where each element of each parameter stands
    std::map<std::pair<Index, Index>, Index> place;
    for (const OwnedSlice& slice : bench.slices) {
      for (Index i = slice.range.begin; i < slice.range.end; ++i) {
        place[{slice.parameter->id(), i}] = static_cast<Index>(place.size());
      }
    }
    for (int ranks = 1; ranks <= 9; ++ranks) {
      INFO(moments << " moments, " << ranks << " ranks");
      Index next = 0;
      for (int rank = 0; rank < ranks; ++rank) {
        const Index before = next;
        for (const OwnedSlice& slice : share_of(bench.slices, rank, ranks)) {
          CHECK(slice.range.size() > 0);
          // in order, without gap or overlap
          CHECK(place.at({slice.parameter->id(), slice.range.begin}) == next);
          CHECK(place.at({slice.parameter->id(), slice.range.end - 1}) ==
                next + slice.range.size() - 1);
          CHECK(slice.weights.floats() == bench.weights.data() + next);
          CHECK(slice.gradient.floats() == bench.gradient.data() + next);
          CHECK(slice.master == bench.master.data() + next);
          CHECK(slice.moments[0] == (moments > 0 ? bench.moment1.data() + next : nullptr));
          CHECK(slice.moments[1] == (moments > 1 ? bench.moment2.data() + next : nullptr));
          next += slice.range.size();
        }
        // nearly equal
        CHECK(next - before >= total / ranks);
        CHECK(next - before <= total / ranks + 1);
      }
      CHECK(next == total);
    }
  }
}

TEST_CASE("a share of nothing is nothing, and more ranks than elements is allowed", "[optim]") {
  CHECK(share_of({}, 0, 3).empty());
  Bench bench(2);
  bench.slices.resize(2);  // 5 + 1 elements
  Index covered = 0;
  for (int rank = 0; rank < 9; ++rank) {
    for (const OwnedSlice& slice : share_of(bench.slices, rank, 9)) covered += slice.range.size();
  }
  CHECK(covered == 6);
}

}  // namespace
}  // namespace zerolab
