#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "lab/error_guide.hpp"
#include "lab/subcommands.hpp"

namespace zerolab {

/// The section of a code, given as ZL301, zl301 or 301. Throws Error (Code::usage) that names the
/// nearest codes for one that there is not.
const ErrorSection& find_section(const std::vector<ErrorSection>& sections,
                                 const std::string& given);

/// A section in full, for people, at most so many columns wide; commands and messages are not cut.
std::string explanation(const ErrorSection& section, std::size_t columns);

nlohmann::ordered_json explanation_json(const ErrorSection& section);

Subcommand explain_subcommand();

}  // namespace zerolab
