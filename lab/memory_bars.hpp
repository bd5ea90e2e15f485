#pragma once

#include <string>
#include <vector>

#include "lab/table.hpp"
#include "stages/memory/usage.hpp"

namespace zerolab {

/// Memory of one rank at its peak.
struct MemoryBar {
  std::string label;
  Usage peak;
};

/// A legend, and a bar for each, all on one scale. At most 110 columns with labels of ten.
std::string memory_bars(const std::vector<MemoryBar>& bars, Style style);

}  // namespace zerolab
