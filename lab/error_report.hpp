#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "stages/base/error.hpp"

namespace zerolab {

/// How errors are told: as one line after another that a program can search, unless somebody
/// watches, or asks for JSON.
struct ErrorStyle {
  bool json = false;        // one object on standard output, and nothing on standard error
  std::size_t columns = 0;  // laid out for a terminal of this width; 0: not laid out
  bool color = false;       // on a terminal only
};

/// What the arguments (which may be wrong), standard error and the environment ask for.
ErrorStyle error_style(const std::vector<std::string>& arguments);

/// The rank that is to blame, if `reporting` may write the message: nobody where all ranks fail
/// alike, or where the message says which do.
std::optional<int> rank_to_blame(const Error& error, int reporting);

/// What error.json has, and --json under "error".
nlohmann::ordered_json error_json(const Error& error, std::optional<int> rank);

/// What is written to standard error. The rank is put before a message that names none.
std::string error_text(const Error& error, std::optional<int> rank, const ErrorStyle& style);

void report_error(const Error& error, std::optional<int> rank, const ErrorStyle& style);

}  // namespace zerolab
