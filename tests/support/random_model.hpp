#pragma once

#include <cstdint>

#include "stages/engine/training.hpp"
#include "tests/support/described_model.hpp"

namespace zerolab::test {

/// A model of odd sizes with what real models have: layers that are shared, repeated, frozen, tied,
/// left out, recomputed, residual, that borrow, that are never used, and experts chosen by the data
/// in a leaf. The same number is the same model.
DescribedModel random_model(std::uint64_t number);

/// Whether a part inside a leaf reads what it does not own.
bool borrows_in_leaf(const DescribedModel& model);

/// Settings of all kinds that change no bit.
void randomize_settings(std::uint64_t number, Training& training);

}  // namespace zerolab::test
