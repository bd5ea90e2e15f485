#pragma once

#include <functional>
#include <string_view>

#include "stages/engine/training.hpp"

namespace zerolab::test {

/// When an accident happens: while the model states are set up, or in step 3: in the forward or the
/// backward of a module, or between backward and update.
enum class Occasion { set_up, forward, backward, step };
inline constexpr Occasion kOccasions[] = {Occasion::set_up, Occasion::forward, Occasion::backward,
                                          Occasion::step};
std::string_view name_of(Occasion occasion);
inline constexpr Index kFatefulStep = 3;

/// Given the books of the rank it happens to.
using Accident = std::function<void(Ledger&)>;

/// Ten steps of a small model in many small collectives that overlap; `accident` happens on one
/// rank.
Training training_with_accident(Occasion occasion, int rank, const Accident& accident, int stage);

}  // namespace zerolab::test
