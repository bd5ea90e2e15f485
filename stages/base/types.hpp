#pragma once

#include <cstddef>
#include <cstdint>

namespace zerolab {

/// Counts and positions of elements, bytes, steps. Signed, so that differences are safe.
using Index = std::int64_t;

/// Rounds `value` up to a multiple of `multiple` (> 0).
constexpr Index round_up(Index value, Index multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

constexpr Index ceil_div(Index value, Index divisor) { return (value + divisor - 1) / divisor; }

}  // namespace zerolab
