#pragma once

#include <nlohmann/json.hpp>

#include "lab/compare_result.hpp"

namespace zerolab {

/// compare.json (docs/log-format.md).
nlohmann::ordered_json compare_json(const CompareResult& result, const Verdict& verdict);

}  // namespace zerolab
