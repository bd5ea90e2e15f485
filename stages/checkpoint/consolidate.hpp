#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>

#include "stages/engine/engine.hpp"

namespace zerolab {

struct ConsolidateReport {
  Index bytes = 0;  // of the file
  double seconds = 0;
};

/// Rank 0 writes all weights, as the model computes with them, into one safetensors file under the
/// model's names. Where no rank has a parameter whole (stage 3), rank 0 gathers one after the other
/// into memory of the category `checkpoint`; DeepSpeed calls this save_16bit_model. Every rank
/// calls it, between two steps. Records a checkpoint event.
///
/// Throws Error: Code::not_gathered_on_save in stage 3, unless the settings have
/// stage3_gather_16bit_weights_on_model_save; OutOfMemory; Code::checkpoint_write.
ConsolidateReport consolidate(Runtime& runtime, Engine& engine, const std::filesystem::path& file,
                              const nlohmann::ordered_json& run = {});

/// The refusal alone.
void expect_may_consolidate(const Settings& settings);

/// Takes the memory that it will need, and gives it back: to run out of it before the training
/// rather than behind it. Throws OutOfMemory on rank 0.
void rehearse_consolidation(Runtime& runtime, Engine& engine);

}  // namespace zerolab
