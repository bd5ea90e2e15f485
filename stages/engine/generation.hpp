#pragma once

#include <string>

#include "stages/engine/engine.hpp"
#include "stages/engine/sampling.hpp"

namespace zerolab {

/// What the model writes behind the prompt, `sampling.count` bytes. There is no cache of keys and
/// values: every byte takes one pass over the last tokens that the model can see. All ranks call it
/// with the same `sampling`, and every one of them gets the same text. Throws as check_sampling and
/// choose_byte.
std::string generate(Engine& engine, Index vocab_size, const Sampling& sampling);

}  // namespace zerolab
