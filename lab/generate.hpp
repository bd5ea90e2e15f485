#pragma once

#include "lab/run.hpp"

namespace zerolab {

/// A training that has come to its end: it loads the weights of the plan's checkpoint, and writes.
/// Everything is frozen, so a rank has weights, and neither gradients nor moments.
Training generating(const Plan& plan, const Effective& effective, int rank);

}  // namespace zerolab
