#pragma once

#include <string>

#include "stages/base/error.hpp"

namespace zerolab {

/// The sample message of a code's section in docs/errors.md, on one line; it may end with "...".
std::string sample_of(Code code);

/// The commands under "See it" in that section, a line each; empty if it has none.
std::string see_it_of(Code code);

/// Whether an error reads as the sample does, up to numbers, names in quotes and line breaks.
bool reads_like(const std::string& message, const std::string& sample);

}  // namespace zerolab
