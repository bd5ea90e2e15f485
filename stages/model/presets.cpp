#include <algorithm>
#include <utility>
#include <vector>

#include "stages/model/description.hpp"

namespace zerolab {
namespace {

struct Preset {
  ModelDescription model;
  Index micro_batch;
  double learning_rate;
};

ModelDescription transformer(std::string name, Index layers, Index heads, Index hidden,
                             Index sequence, Index vocabulary) {
  ModelDescription model;
  model.type = ModelDescription::Type::transformer;
  model.name = std::move(name);
  model.vocab_size = vocabulary;
  model.sequence_length = sequence;
  model.num_layers = layers;
  model.num_heads = heads;
  model.hidden_size = hidden;
  return model;
}

ModelDescription mlp(std::string name, Index context, Index embedding, std::vector<Index> hidden) {
  ModelDescription model;
  model.type = ModelDescription::Type::mlp;
  model.name = std::move(name);
  model.sequence_length = context;
  model.embedding_size = embedding;
  model.hidden_sizes = std::move(hidden);
  return model;
}

std::vector<Preset> presets() {
  return {
      {mlp("mlp-small", 16, 16, {256, 256}), 32, 2e-3},
      {transformer("gpt-nano", 3, 4, 64, 64, 256), 2, 3e-3},
      {transformer("gpt-mini", 6, 6, 192, 128, 256), 4, 1e-3},
      {transformer("gpt2", 12, 12, 768, 1024, 50257), 1, 3e-4},
  };
}

}  // namespace

std::vector<std::string> preset_names() {
  std::vector<std::string> names;
  for (const Preset& preset : presets()) names.push_back(preset.model.name);
  return names;
}

std::optional<ModelDescription> find_preset(std::string_view name) {
  for (const Preset& preset : presets()) {
    if (preset.model.name == name) return preset.model;
  }
  return std::nullopt;
}

RunDefaults run_defaults(const ModelDescription& model) {
  RunDefaults defaults;
  for (const Preset& preset : presets()) {
    if (preset.model.name != model.name) continue;
    defaults.micro_batch = preset.micro_batch;
    defaults.learning_rate = preset.learning_rate;
  }
  const Index all = parameter_count(model);
  defaults.reduce_bucket_size = std::max<Index>(1, all / 16);
  defaults.prefetch_bucket_size = std::min(largest_parameter(model), std::max<Index>(1, all / 8));
  defaults.param_persistence_threshold = std::min<Index>(100'000, all / 100);
  return defaults;
}

}  // namespace zerolab
