#include "stages/optim/owned_slice.hpp"

namespace zerolab {

std::vector<OwnedSlice> share_of(const std::vector<OwnedSlice>& slices, int rank, int ranks) {
  Index total = 0;
  for (const OwnedSlice& slice : slices) total += slice.range.size();
  const Range share{total * rank / ranks, total * (rank + 1) / ranks};

  std::vector<OwnedSlice> result;
  Index before = 0;
  for (const OwnedSlice& slice : slices) {
    const Range part = intersect({before, before + slice.range.size()}, share);
    const Index skipped = part.begin - before;
    before += slice.range.size();
    if (part.size() == 0) continue;
    OwnedSlice cut = slice;
    cut.range = {slice.range.begin + skipped, slice.range.begin + skipped + part.size()};
    cut.weights = slice.weights + skipped;
    cut.gradient = slice.gradient + skipped;
    if (cut.master != nullptr) cut.master += skipped;
    for (float*& moment : cut.moments) {
      if (moment != nullptr) moment += skipped;
    }
    result.push_back(cut);
  }
  return result;
}

}  // namespace zerolab
