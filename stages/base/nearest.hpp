#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "stages/base/types.hpp"

namespace zerolab {

/// How many letters have to be changed, added, dropped or swapped with their neighbour to turn one
/// word into the other (optimal string alignment distance).
Index edit_distance(std::string_view a, std::string_view b);

/// The known name that was probably meant; empty if none is near.
std::string nearest(std::string_view given, const std::vector<std::string>& known);

/// "; did you mean stage?", or nothing if no known name is near.
std::string did_you_mean(std::string_view given, const std::vector<std::string>& known);

}  // namespace zerolab
