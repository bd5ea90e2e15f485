#include "lab/run_json.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <ctime>

#include "lab/version.hpp"
#include "stages/engine/prepare_model.hpp"
#include "stages/engine/summary.hpp"
#include "stages/zero3/persistence.hpp"

namespace zerolab {

using Json = nlohmann::ordered_json;

namespace {

Json names_json(const auto& named) {
  Json names = Json::array();
  for (const auto* each : named) names.push_back(each->name());
  return names;
}

Json generate_json(const Training& training) {
  if (!training.generate) return nullptr;
  Json json = to_json(*training.generate);
  json["every"] = training.generate_every;
  return json;
}

Json resumed_json(const Plan& plan) {
  if (!plan.resumed) return nullptr;
  const Manifest& manifest = plan.resumed->checkpoint.manifest();
  return {{"checkpoint", plan.resumed->name()},
          {"step", manifest.progress.steps_done},
          {"stage", manifest.stage},
          {"world_size", manifest.world_size()}};
}

}  // namespace

Json parameters_json(const Training& training) {
  const std::unique_ptr<Model> model = training.build();
  const ZeroSettings& zero = training.settings.zero;
  const std::vector<bool> persistent = persistent_parameters(model->parameters().sizes(), zero);
  Json list = Json::array();
  for (const Parameter& parameter : model->parameters()) {
    list.push_back(
        {{"id", parameter.id()},
         {"name", parameter.name()},
         {"shape", parameter.shape()},
         {"numel", parameter.numel()},
         {"requires_grad", parameter.requires_grad()},
         {"persistent", zero.stage == 3 && persistent[static_cast<std::size_t>(parameter.id())]}});
  }
  return list;
}

// Each module once, wherever it stands, and before what it holds.
Json modules_json(const Training& training) {
  const std::unique_ptr<Model> model = training.build();
  prepare_model(*model, training.settings);
  std::vector<Module*> modules{&model->root()};
  Json list = Json::array();
  for (std::size_t i = 0; i < modules.size(); ++i) {
    const Module& module = *modules[i];
    for (Module* child : module.children()) {
      if (std::find(modules.begin(), modules.end(), child) == modules.end()) {
        modules.push_back(child);
      }
    }
    list.push_back({{"name", module.name()},
                    {"class", module.class_name()},
                    {"leaf", module.is_leaf()},
                    {"children", names_json(module.children())},
                    {"parameters", names_json(module.own_parameters())},
                    {"external", names_json(module.external_parameters())}});
  }
  return list;
}

Json to_json(const ModelDescription& model) {
  Json json{{"name", model.name},
            {"type", name_of(model.type)},
            {"vocab_size", model.vocab_size},
            {"sequence_length", model.sequence_length}};
  if (model.type == ModelDescription::Type::transformer) {
    json["num_layers"] = model.num_layers;
    json["num_heads"] = model.num_heads;
    json["hidden_size"] = model.hidden_size;
  } else {
    json["embedding_size"] = model.embedding_size;
    json["hidden_sizes"] = model.hidden_sizes;
  }
  return json;
}

Json run_json(const Plan& plan, const Effective& effective, const Training& training,
              const Communicator& communicator) {
  Json settings = Json::array();
  for (const SettingRow& row : effective.rows) settings.push_back(Json(to_json(row)));
  const Text& text = plan.data->text();
  return {
      {"zerolab", version()},
      {"command", plan.command_line},
      {"started", fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)))},
      {"stage", training.settings.zero.stage},
      {"world_size", communicator.size()},
      {"transport", communicator.description()},
      {"device", device_description(training)},
      {"threads_per_rank", training.threads},
      {"device_memory",
       training.device_memory == Ledger::kUnlimited ? Json(nullptr) : Json(training.device_memory)},
      {"link", training.link.slows() ? Json{{"bandwidth", training.link.bandwidth},
                                            {"latency", training.link.latency}}
                                     : Json(nullptr)},
      {"check_collectives", training.check_collectives},
      {"deliberate_mistake", plan.options.broken ? Json(*plan.options.broken) : Json(nullptr)},
      {"seed", training.seed},
      {"steps", training.steps},
      {"resumed", resumed_json(plan)},
      {"generate", generate_json(training)},
      {"model", to_json(plan.model)},
      {"data", {{"origin", text.origin}, {"bytes", text.size()}, {"xxh64", hash_text(text.hash)}}},
      {"settings", settings},
      {"warnings", effective.warnings},
      {"parameters", parameters_json(training)},
      {"modules", modules_json(training)},
      {"state_machine", state_machine_json()}};
}

}  // namespace zerolab
