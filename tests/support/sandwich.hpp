#pragma once

#include <functional>
#include <memory>

#include "stages/model/layers.hpp"
#include "tests/support/trainings.hpp"

namespace zerolab::test {

inline constexpr Index kSandwichWidth = 3;

/// Makes the module under test. Its input and output are [sequences, kSandwichWidth].
using Filling = std::function<std::unique_ptr<Module>(ParameterSet&)>;

/// Ten steps of embedding -> filling -> linear, tokens of kOddVocabulary and sequences of one.
Training training_of_sandwich(const Filling& filling, int stage);

}  // namespace zerolab::test
