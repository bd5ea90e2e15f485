#include "lab/compare_result.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <limits>

namespace zerolab {
namespace {

// Doubles in their order, as integers: neighbours differ by 1.
std::int64_t ordered(double value) {
  const auto bits = std::bit_cast<std::int64_t>(value);
  return bits < 0 ? std::numeric_limits<std::int64_t>::min() - bits : bits;
}

Index ulps_between(double a, double b) {
  const std::uint64_t distance = static_cast<std::uint64_t>(std::max(ordered(a), ordered(b))) -
                                 static_cast<std::uint64_t>(std::min(ordered(a), ordered(b)));
  return static_cast<Index>(std::min<std::uint64_t>(
      distance, static_cast<std::uint64_t>(std::numeric_limits<Index>::max())));
}

bool same_bits(double a, double b) {
  return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b);
}

// Where `other` leaves `first` at this step; empty where it does not.
std::string difference(const StageResult& first, const StageResult& other, std::size_t step) {
  const auto differ = [&](std::string_view what, const auto& a, const auto& b) {
    return fmt::format("step {}: the {} of stage {} is {}, of stage {} {}", step + 1, what,
                       other.stage, b, first.stage, a);
  };
  if (!same_bits(first.loss[step], other.loss[step])) {
    return differ("loss", first.loss[step], other.loss[step]);
  }
  if (!same_bits(first.grad_norm[step], other.grad_norm[step])) {
    return differ("gradient norm", first.grad_norm[step], other.grad_norm[step]);
  }
  if (first.param_hash[step] != other.param_hash[step]) {
    return differ("parameter hash", fmt::format("{:016x}", first.param_hash[step]),
                  fmt::format("{:016x}", other.param_hash[step]));
  }
  return "";
}

}  // namespace

Verdict judge(const CompareResult& result) {
  Verdict verdict;
  verdict.promised = result.gradient_accumulation_steps == 1;
  if (result.stages.empty()) return verdict;
  const StageResult& first = result.stages.front();
  for (std::size_t step = 0; step < first.loss.size(); ++step) {
    for (const StageResult& other : result.stages) {
      verdict.max_ulp = std::max(verdict.max_ulp, ulps_between(first.loss[step], other.loss[step]));
      if (!verdict.first_difference.empty()) continue;
      verdict.first_difference = difference(first, other, step);
      verdict.bit_identical = verdict.first_difference.empty();
    }
  }
  return verdict;
}

}  // namespace zerolab
