#pragma once

#include <memory>

#include "stages/engine/stage.hpp"

namespace zerolab {

inline constexpr int kHighestStage = 3;

/// The ZeRO stage of this number, 0 (plain data parallel) to 3.
std::unique_ptr<Stage> make_stage(int number, Runtime& runtime);
/// The one that the settings name.
std::unique_ptr<Stage> make_stage(Runtime& runtime);

}  // namespace zerolab
