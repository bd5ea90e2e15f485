#pragma once

#include "stages/config/settings.hpp"
#include "stages/device/device.hpp"
#include "stages/optim/owned_slice.hpp"

namespace zerolab {

/// How many tensors of the size of the master weights the optimizer keeps: Adam 2, SGD with
/// momentum 1, SGD 0.
int moments_needed(const OptimizerSettings& settings);

/// One optimizer step on one slice. `step` counts from 1; `gradient_factor` is multiplied into the
/// gradient (clipping).
void update(Device& device, const OptimizerSettings& settings, Index step, float gradient_factor,
            const OwnedSlice& slice);

/// What the gradient is multiplied with so that its norm is at most `clipping`, as DeepSpeed has
/// it: 1 / max((norm + 1e-6) / clipping, 1). 1 when clipping is 0 (off).
float clip_factor(double norm, double clipping);

}  // namespace zerolab
