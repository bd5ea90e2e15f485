#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "stages/engine/training.hpp"
#include "stages/model/description.hpp"

namespace zerolab::test {

/// A file of this folder, without its ending. Throws std::runtime_error if it cannot be read.
nlohmann::json read_reference(const std::string& name);

/// The model that a file describes in its own words.
ModelDescription described_by(const nlohmann::json& model);

/// The text and the batches that a training file prescribes, made by the rules that it states.
std::string text_of(const nlohmann::json& reference);
Index batch_start(const nlohmann::json& reference, Index step, Index position);

/// The training of a file, which it must not outlive: everything but stage, micro-batch and number
/// of ranks.
Training training_of(const nlohmann::json& reference);

}  // namespace zerolab::test
