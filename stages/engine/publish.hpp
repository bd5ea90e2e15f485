#pragma once

#include "stages/engine/states.hpp"

namespace zerolab {

/// After the update each rank's slice of the flat parameters goes to everybody; meanwhile every
/// parameter is INFLIGHT.
void publish_slices(Runtime& runtime, ParameterSet& parameters, const FlatLayout& layout,
                    const FlatBuffer& buffer);

}  // namespace zerolab
