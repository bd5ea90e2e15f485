#pragma once

#include <cstdint>
#include <string>

#include "tests/support/trainings.hpp"

namespace zerolab::test {

/// A small model under settings that nobody would think of, as a seed draws them.
struct DrawnTraining {
  int ranks = 1;
  Training training;
  std::string text;  // to repeat it by hand
};
DrawnTraining draw_training(std::uint64_t seed);

}  // namespace zerolab::test
