#pragma once

#include "stages/base/philox.hpp"
#include "stages/base/types.hpp"

namespace zerolab::test {

/// Draws that a seed decides, and the number of what is drawn.
class Dice {
 public:
  Dice(std::uint64_t seed, std::uint64_t purpose) : random_(seed), purpose_(purpose) {}

  Index below(Index n) { return static_cast<Index>(random_(purpose_, count_++).word[0]) % n; }
  bool coin() { return below(2) == 0; }
  /// Often something that is never reached, or nothing; otherwise below `most`.
  Index limit(Index most) {
    const Index kind = below(4);
    return kind == 0 ? 0 : kind == 1 ? Index{1} << 40 : below(most);
  }

 private:
  Philox random_;
  std::uint64_t purpose_;
  std::uint64_t count_ = 0;
};

}  // namespace zerolab::test
