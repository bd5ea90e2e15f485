#pragma once

#include <string>

#include "lab/table.hpp"
#include "stages/engine/training.hpp"

namespace zerolab {

/// What `zerolab train` prints: the loss along the way, memory by category, bytes by collective,
/// what was saved.
std::string train_table(const RankReport& report, const Training& training, int ranks, Style style);

}  // namespace zerolab
