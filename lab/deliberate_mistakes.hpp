#pragma once

#include <string>
#include <vector>

#include "stages/model/model.hpp"

namespace zerolab {

/// A mistake that `--break` makes on purpose, to show the error it leads to.
struct DeliberateMistake {
  std::string name;
  std::string what;  // for --help
};
std::vector<DeliberateMistake> deliberate_mistakes();

/// Throws Error (Code::usage) if there is none of this name, or it does not apply to the model.
void make_deliberate_mistake(const std::string& name, Model& model);

}  // namespace zerolab
