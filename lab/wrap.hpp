#pragma once

#include <string>
#include <string_view>

namespace zerolab {

/// The line in pieces of at most so many columns, broken at spaces; those after the first begin
/// with `indent`. A word that is too long has a piece of its own. No newline behind the last one.
std::string wrapped(std::string_view line, std::size_t columns, std::string_view indent = "");

}  // namespace zerolab
