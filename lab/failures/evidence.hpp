#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "lab/failures/failure.hpp"

namespace zerolab {

/// The lines of a run's log that show what the page says, ready to print; none if there are none.
std::vector<std::string> evidence_in(const std::filesystem::path& run, const Evidence& evidence);

/// How many events of each kind rank 0 has logged.
nlohmann::json count_events(const std::filesystem::path& run);

}  // namespace zerolab
