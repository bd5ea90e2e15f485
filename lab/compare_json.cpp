#include "lab/compare_json.hpp"

#include "stages/engine/summary.hpp"

namespace zerolab {

using Json = nlohmann::ordered_json;

Json compare_json(const CompareResult& result, const Verdict& verdict) {
  Json stages = Json::array();
  for (const StageResult& stage : result.stages) {
    Json loss = Json::array();
    Json grad_norm = Json::array();
    Json param_hash = Json::array();
    for (const double value : stage.loss) loss.push_back(number_json(value));
    for (const double value : stage.grad_norm) grad_norm.push_back(number_json(value));
    for (const std::uint64_t hash : stage.param_hash) param_hash.push_back(hash_text(hash));
    stages.push_back(
        {{"stage", stage.stage},
         {"world_size", result.world_size},
         {"loss", loss},
         {"grad_norm", grad_norm},
         {"param_hash", param_hash},
         {"step_seconds", stage.step_seconds},
         {"tokens_per_second", stage.tokens_per_second},
         {"memory",
          {{"device", to_json(MemoryUse{stage.peak, stage.category_peak, stage.steady})}}},
         {"comm", to_json(stage.traffic)}});
  }
  return {{"bitwise_equal", verdict.bit_identical},
          {"max_ulp", verdict.max_ulp},
          {"model", result.model},
          {"params", result.parameters},
          {"transport", result.transport},
          {"stages", stages}};
}

}  // namespace zerolab
