#include "stages/engine/summary.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "stages/base/json_text.hpp"
#include "stages/model/parameter_state.hpp"

namespace zerolab {

using Json = nlohmann::ordered_json;

double tokens_per_second(const RankReport& report, const Training& training, int ranks) {
  if (report.steps.empty()) return 0;
  std::vector<double> seconds;
  for (const StepResult& step : report.steps) seconds.push_back(step.seconds);
  const auto middle = seconds.begin() + static_cast<std::ptrdiff_t>(seconds.size() / 2);
  std::nth_element(seconds.begin(), middle, seconds.end());
  const Settings& settings = training.settings;
  const Index tokens = ranks * settings.micro_batch * settings.gradient_accumulation_steps *
                       training.sequence_length;
  return *middle > 0 ? static_cast<double>(tokens) / *middle : 0;
}

Index skipped_steps(const RankReport& report) {
  return std::count_if(report.steps.begin(), report.steps.end(),
                       [](const StepResult& step) { return step.skipped; });
}

Json number_json(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

std::string hash_text(std::uint64_t hash) { return fmt::format("{:016x}", hash); }

Json to_json(const Usage& usage) {
  Json json;
  for (std::size_t c = 0; c < kCategories; ++c) {
    json[std::string(name_of(static_cast<Category>(c)))] = usage.by_category[c];
  }
  json["total"] = usage.total();
  return json;
}

Json to_json(const MemoryUse& memory) {
  Json category_peak = to_json(memory.category_peak);
  category_peak.erase("total");  // the categories peak at different moments
  return {{"peak", to_json(memory.peak)},
          {"category_peak", category_peak},
          {"steady", to_json(memory.steady)}};
}

Json to_json(const std::map<Op, Traffic>& traffic) {
  Json json = Json::object();
  for (const auto& [op, counted] : traffic) {
    json[std::string(name_of(op))] = {{"calls", counted.calls},
                                      {"elements", counted.elements},
                                      {"bytes_sent", counted.bytes_sent}};
  }
  return json;
}

Json to_json(const FetchCounts& fetches) {
  return {{"hits", fetches.hits}, {"misses", fetches.misses}, {"unused", fetches.unused}};
}

Json generations_json(const RankReport& report, const Training& training) {
  Json generations = Json::array();
  for (const Generation& generation : report.generations) {
    generations.push_back({{"step", generation.step},
                           {"prompt", bytes_as_text(training.generate->prompt)},
                           {"text", bytes_as_text(generation.text)}});
  }
  return generations;
}

Json summary_json(const RankReport& report, const Training& training, int ranks) {
  Json steps = Json::array();
  for (const StepResult& step : report.steps) {
    steps.push_back({{"step", step.step},
                     {"loss", number_json(step.loss)},
                     {"grad_norm", number_json(step.grad_norm)},
                     {"lr", as_written(step.learning_rate)},
                     {"scale", number_json(step.scale)},
                     {"skipped", step.skipped},
                     {"flushed", step.rounding.share()},
                     {"param_hash", hash_text(step.hash)},
                     {"prefetch", to_json(step.fetches)},
                     {"seconds", step.seconds}});
  }
  Json validation = Json::array();
  for (const ValidationResult& result : report.validation) {
    validation.push_back({{"step", result.step}, {"loss", number_json(result.loss)}});
  }
  Json checkpoints = Json::array();
  for (const CheckpointResult& each : report.checkpoints) {
    checkpoints.push_back({{"step", each.step},
                           {"path", each.path},
                           {"bytes", each.bytes},
                           {"seconds", each.seconds}});
  }
  Json memory = Json::array();
  for (const MemoryUse& of_rank : report.memory) memory.push_back({{"device", to_json(of_rank)}});

  Json json{{"params", report.parameters},
            {"trainable_params", report.trainable},
            {"stage", training.settings.zero.stage},
            {"world_size", ranks},
            {"dtype", name_of(training.settings.dtype)},
            {"skipped_steps", skipped_steps(report)},
            {"steps", steps},
            {"validation", validation},
            {"generations", generations_json(report, training)},
            {"checkpoints", checkpoints},
            {"memory", memory},
            {"validation_comm", to_json(report.validation_comm.traffic)},
            {"generation_comm", to_json(report.generation_comm.traffic)},
            {"comm", to_json(report.comm.traffic)},
            {"prefetch", to_json(report.fetches)},
            {"comm_seconds", report.comm.busy_seconds},
            {"exposed_comm_seconds", report.comm.exposed_seconds}};
  json["overlap_fraction"] =
      report.comm.busy_seconds > 0
          ? Json(std::max(0.0, 1 - report.comm.exposed_seconds / report.comm.busy_seconds))
          : Json(nullptr);
  json["tokens_per_second"] = tokens_per_second(report, training, ranks);
  return json;
}

Json state_machine_json() {
  Json parameter = Json::array();
  for (const Move& move : legal_moves()) {
    parameter.push_back(
        {{"from", name_of(move.from)}, {"to", name_of(move.to)}, {"cause", name_of(move.cause)}});
  }
  Json gradient = Json::array();
  for (const GradientMove& move : legal_gradient_moves()) {
    gradient.push_back({{"from", name_of(move.from)}, {"to", name_of(move.to)}});
  }
  return {{"parameter", parameter}, {"gradient", gradient}};
}

}  // namespace zerolab
