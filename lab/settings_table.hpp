#pragma once

#include <string>
#include <vector>

#include "lab/table.hpp"
#include "stages/config/resolve.hpp"

namespace zerolab {

/// Every setting with its value, who said so, and whether it has an effect.
std::string settings_table(const std::vector<SettingRow>& rows, Style style);

}  // namespace zerolab
