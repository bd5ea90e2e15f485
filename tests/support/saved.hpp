#pragma once

#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "stages/checkpoint/load.hpp"
#include "stages/checkpoint/save.hpp"
#include "tests/support/trainings.hpp"

namespace zerolab::test {

/// The training with a checkpoint saved after these steps.
Training saving(Training training, const std::filesystem::path& folder,
                const std::set<Index>& after_steps);

/// The training from a checkpoint on; `name` as Checkpoint::open has it.
Training resuming(Training training, const std::string& name);

/// A copy of every state of a model: "state/parameter" -> all elements, bit by bit. Every rank
/// calls it, and every rank has all of it then.
std::map<std::string, std::vector<std::uint32_t>> states_of(Runtime& runtime, Engine& engine);

/// Those right behind loading, or after this step.
using States = std::map<std::string, std::vector<std::uint32_t>>;

/// Trains and saves after the last step; returns the states that were saved.
States saved_states(int ranks, Training training, const std::filesystem::path& folder);

/// The states of a training that has just been set up and has done this (Training::resume).
States states_behind(int ranks, Training training,
                     const std::function<void(Runtime&, Engine&)>& loading);

}  // namespace zerolab::test
