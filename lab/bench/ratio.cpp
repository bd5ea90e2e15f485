#include "lab/bench/ratio.hpp"

#include <algorithm>
#include <chrono>

namespace zerolab::bench {
namespace {

// `values` are sorted; between two of them it is on the straight line.
double quantile(const std::vector<double>& values, double fraction) {
  const double place = fraction * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const std::size_t above = std::min(below + 1, values.size() - 1);
  return values[below] + (place - static_cast<double>(below)) * (values[above] - values[below]);
}

}  // namespace

Spread spread_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return {quantile(values, 0.5), quantile(values, 0.25), quantile(values, 0.75)};
}

Spread ratio_of(const std::vector<double>& numerator, const std::vector<double>& denominator) {
  std::vector<double> ratios;
  for (std::size_t i = 0; i < numerator.size(); ++i) {
    ratios.push_back(numerator[i] / denominator[i]);
  }
  return spread_of(std::move(ratios));
}

double seconds_of(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

std::vector<std::vector<double>> interleave(int rounds, const std::vector<Work>& works) {
  std::vector<std::vector<double>> seconds(works.size());
  for (int round = 0; round < rounds; ++round) {
    for (std::size_t i = 0; i < works.size(); ++i) {
      const std::size_t turn = round % 2 == 0 ? i : works.size() - 1 - i;
      if (works[turn].before) works[turn].before();
      seconds[turn].push_back(seconds_of(works[turn].run));
    }
  }
  return seconds;
}

}  // namespace zerolab::bench
