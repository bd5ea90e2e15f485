#pragma once

#include <string>
#include <vector>

#include "stages/config/settings.hpp"

namespace zerolab {

/// Which parameters of these sizes stay whole from step to step: in order of registration, those of
/// at most stage3_param_persistence_threshold elements, as long as all of them together have at
/// most stage3_model_persistence_threshold.
std::vector<bool> persistent_parameters(const std::vector<Index>& elements,
                                        const ZeroSettings& settings);

/// Why these settings let a model of these sizes never go, in a step or in a pass, so that stage 3
/// saves less than it could; empty if they do let something go.
std::string why_nothing_is_released(const std::vector<Index>& elements,
                                    const ZeroSettings& settings);

}  // namespace zerolab
