#pragma once

#include <string_view>

namespace zerolab::report {

// The files in visualize/report/assets and D3, built in by CMake.

std::string_view page_template();
std::string_view style();
std::string_view d3();
/// The scripts, one behind the other.
std::string_view scripts();

}  // namespace zerolab::report
