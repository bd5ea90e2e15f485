#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "tests/support/logged_run.hpp"

namespace zerolab::test {

/// Two steps of a small transformer on three ranks, with the settings that reports look at.
LoggedRun reported_run(int stage);

/// The settings of a training as run.json has them, as far as reports look at them.
LoggedRun::Json settings_of_run(const Training& training);

/// What the report page of this run is made of; `error_json` is the text of error.json, if any.
nlohmann::ordered_json page_data_of(const LoggedRun& run, const std::string& error_json = "");

/// The texts of its remarks of one kind: failure, warning, hint or missing.
std::vector<std::string> remarks_of(const nlohmann::ordered_json& page, const std::string& kind);

}  // namespace zerolab::test
