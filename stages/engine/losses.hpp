#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <vector>

#include "stages/base/types.hpp"

namespace zerolab {

/// The losses of one rank's passes (the micro-steps of a step, the rounds of an evaluation), and
/// how many of their targets count: those from 0.
class Losses {
 public:
  void count(const std::vector<std::int32_t>& targets);
  /// Of a pass: the sum over the targets that count, divided by the number of all.
  void add(double loss) { of_passes_.push_back(loss); }

  /// What the other ranks have to know; equally long on all.
  std::vector<std::byte> message() const;

 private:
  friend struct MeanLoss;
  struct Counts {
    Index all = 0, counting = 0;
  };
  Counts counts_;
  std::vector<double> of_passes_;
};

/// The mean over the targets that count, of all passes of all ranks.
struct MeanLoss {
  double value = 0;
  /// What a mean over all targets is too small by, that of the gradient too; exactly 1 where all of
  /// them count.
  double correction = 1;
  std::set<int> not_finite = {};  // ranks that have such a loss

  MeanLoss() = default;
  /// From the ranks' messages, behind the first `offset` bytes of each. A sum of doubles in the
  /// order (pass, rank).
  explicit MeanLoss(const std::vector<std::vector<std::byte>>& messages, std::size_t offset = 0);
};

}  // namespace zerolab
