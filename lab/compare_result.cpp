#include "lab/compare_result.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace zerolab {
namespace {

// The distance of two numbers in units in the last place of fp32 at their size: the losses are
// doubles, but what differs between stages is the rounding of fp32 gradients and weights.
double ulps_between(double a, double b) {
  if (a == b || !std::isfinite(a) || !std::isfinite(b)) return 0;
  const int exponent = std::ilogb(std::max(std::abs(a), std::abs(b)));
  return std::abs(a - b) / std::ldexp(1.0, exponent - (std::numeric_limits<float>::digits - 1));
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
  verdict.promised = result.gradient_accumulation_steps == 1 || result.reduces_every_micro_step;
  if (result.stages.empty()) return verdict;
  const StageResult& first = result.stages.front();
  for (std::size_t step = 0; step < first.loss.size(); ++step) {
    for (const StageResult& other : result.stages) {
      verdict.max_ulp = std::max(verdict.max_ulp, ulps_between(first.loss[step], other.loss[step]));
      if (!verdict.first_difference.empty()) continue;
      verdict.first_difference = difference(first, other, step);
    }
  }
  for (const StageResult& other : result.stages) {
    for (std::size_t i = 0; i < first.validation_loss.size(); ++i) {
      const double a = first.validation_loss[i];
      const double b = other.validation_loss[i];
      if (same_bits(a, b) || !verdict.first_difference.empty()) continue;
      verdict.first_difference = fmt::format("the held-out loss of stage {} is {}, of stage {} {}",
                                             other.stage, b, first.stage, a);
    }
  }
  verdict.bit_identical = verdict.first_difference.empty();
  return verdict;
}

}  // namespace zerolab
