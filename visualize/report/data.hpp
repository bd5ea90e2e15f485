#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <vector>

namespace zerolab::report {

/// What a report page shows, as one JSON value (visualize/report/data.cpp has its fields).
/// `folders`: run folders, or those of comparisons. Throws log::Unreadable.
nlohmann::ordered_json page_data(const std::vector<std::filesystem::path>& folders);

}  // namespace zerolab::report
