#pragma once

#include "stages/device/device.hpp"

namespace zerolab {

// The three products of y[rows, out] = x[rows, in] W^T, W being [out, in] in memory.

inline Product forward_product(Index rows, Index in, Index out, bool bias) {
  return {.m = rows,
          .n = out,
          .k = in,
          .a = {.leading = in},
          .b = {.leading = in, .transposed = true},
          .c = {.leading = out},
          .bias = bias};
}

inline Product input_gradient_product(Index rows, Index in, Index out) {
  return {.m = rows,
          .n = in,
          .k = out,
          .a = {.leading = out},
          .b = {.leading = in},
          .c = {.leading = in}};
}

inline Product weight_gradient_product(Index rows, Index in, Index out) {
  return {.m = out,
          .n = in,
          .k = rows,
          .a = {.leading = out, .transposed = true},
          .b = {.leading = in},
          .c = {.leading = in}};
}

}  // namespace zerolab
