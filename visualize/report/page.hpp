#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace zerolab::report {

/// The report as one HTML file that needs nothing else: style, scripts, D3 and `data` are in it.
std::string html_page(const nlohmann::ordered_json& data);

}  // namespace zerolab::report
