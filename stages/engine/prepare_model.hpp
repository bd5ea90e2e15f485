#pragma once

#include "stages/config/settings.hpp"
#include "stages/model/model.hpp"

namespace zerolab {

/// Gives a model, before it is attached, what the settings say of it: leaf modules, and the
/// segments that are recomputed in backward. From then on nothing can be frozen. Throws Error
/// (Code::config_value) when leaf_module names what is not there.
void prepare_model(Model& model, const Settings& settings);

/// Throws Error (Code::usage) when every parameter is frozen.
void refuse_nothing_to_train(const ParameterSet& parameters);

}  // namespace zerolab
