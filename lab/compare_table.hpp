#pragma once

#include <string>

#include "lab/compare_result.hpp"
#include "lab/table.hpp"

namespace zerolab {

/// What `zerolab compare` prints: a row per stage, a bar of its memory at the peak, the verdict.
/// At most 110 columns.
std::string compare_table(const CompareResult& result, Style style);

}  // namespace zerolab
