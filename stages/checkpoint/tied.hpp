#pragma once

#include <map>
#include <string>

#include "stages/model/model.hpp"

namespace zerolab {

/// The second names that parameters have with the modules that share them:
/// {"head.weight": "token_embedding.weight"}.
std::map<std::string, std::string> tied_names(Model& model);

}  // namespace zerolab
