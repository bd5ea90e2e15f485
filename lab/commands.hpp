#pragma once

#include "lab/run.hpp"

namespace zerolab {

/// `zerolab train` and `zerolab import` on one rank: one stage, one run folder.
void train_command(Communicator& communicator, const Plan& plan);

/// `zerolab generate` on one rank: text on standard output, no run folder.
void generate_command(Communicator& communicator, const Plan& plan);

/// `zerolab compare` on one rank: stages one after another, compare.json and a folder for each.
/// Throws Error (Code::not_bit_identical) where stages differ and must not.
void compare_command(Communicator& communicator, const Plan& plan);

}  // namespace zerolab
