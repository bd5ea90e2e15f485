#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "stages/base/types.hpp"

namespace zerolab {

/// What a model is made of: enough to build it, and nothing about how it is trained.
struct ModelDescription {
  enum class Type { mlp, transformer };

  Type type = Type::transformer;
  std::string name;
  Index vocab_size = 256;
  Index sequence_length = 0;  // tokens the model sees at once

  // Transformer: GPT-2's layout, the head tied to the token embedding.
  Index num_layers = 0;
  Index num_heads = 0;
  Index hidden_size = 0;

  // MLP: the embeddings of all tokens side by side, then hidden layers, then the next token.
  Index embedding_size = 0;
  std::vector<Index> hidden_sizes;

  bool operator==(const ModelDescription&) const = default;
};

std::string_view name_of(ModelDescription::Type type);

/// How many parameters the model has; a tied one counts once. Throws Error
/// (Code::model_description) if they are too many to count.
Index parameter_count(const ModelDescription& model);

/// Elements of its largest parameter.
Index largest_parameter(const ModelDescription& model);

/// What a run takes for this model where neither configuration nor flag says otherwise.
struct RunDefaults {
  Index micro_batch = 4;
  double learning_rate = 1e-3;
  // In elements, to the scale of the model (docs/configuration.md).
  Index reduce_bucket_size = 1;
  Index prefetch_bucket_size = 1;
  Index param_persistence_threshold = 0;
  Index max_reuse_distance = 0;
};
RunDefaults run_defaults(const ModelDescription& model);

/// The names `--model` knows: mlp-small, gpt-nano, gpt-mini, gpt2.
std::vector<std::string> preset_names();
std::optional<ModelDescription> find_preset(std::string_view name);

/// Reads a description from JSON; `file` is how messages call it. All mistakes are reported at
/// once. Throws Error (Code::config_syntax, Code::model_description).
ModelDescription parse_model(std::string_view json_text, const std::string& file);

/// A preset by name, or the description in a JSON file. Throws Error (as parse_model).
ModelDescription describe_model(const std::string& preset_or_file);

}  // namespace zerolab
