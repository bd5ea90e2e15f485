#pragma once

#include <functional>
#include <vector>

namespace zerolab::bench {

/// The median of several measurements, and the quartiles: half of them lie from `low` to `high`.
struct Spread {
  double median = 0, low = 0, high = 0;
};

/// Of at least one value.
Spread spread_of(std::vector<double> values);

/// Of numerator[i] / denominator[i]. Both are as long, and sample i of one was taken next to sample
/// i of the other (see `interleave`).
Spread ratio_of(const std::vector<double>& numerator, const std::vector<double>& denominator);

/// One of several things that are timed in turn.
struct Work {
  std::function<void()> run;          // what is timed
  std::function<void()> before = {};  // what comes right before it, untimed: caches, a barrier
};

/// Seconds of every work, [work][round]. In each round every work runs once, in turn, forwards and
/// backwards by turns: whatever else the machine does falls on all of them alike, so ratios within
/// a round mean something where two separate timings would not.
std::vector<std::vector<double>> interleave(int rounds, const std::vector<Work>& works);

double seconds_of(const std::function<void()>& work);

}  // namespace zerolab::bench
