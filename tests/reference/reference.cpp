#include "tests/reference/reference.hpp"

#include <filesystem>
#include <stdexcept>

#include "stages/base/philox.hpp"
#include "stages/base/read_file.hpp"
#include "stages/stages.hpp"

namespace zerolab::test {
namespace {

OptimizerSettings optimizer_of(const nlohmann::json& reference) {
  const nlohmann::json& given = reference.at("optimizer");
  OptimizerSettings settings;
  settings.learning_rate = given.at("learning_rate").get<float>();
  settings.weight_decay = given.at("weight_decay").get<float>();
  if (given.at("type") == "sgd") {
    settings.type = OptimizerSettings::Type::sgd;
    settings.momentum = given.at("momentum").get<float>();
  } else {
    settings.adam_w_mode = given.at("adam_w_mode").get<bool>();
    settings.beta1 = given.at("betas").at(0).get<float>();
    settings.beta2 = given.at("betas").at(1).get<float>();
    settings.epsilon = given.at("epsilon").get<float>();
  }
  return settings;
}

}  // namespace

nlohmann::json read_reference(const std::string& name) {
  const auto text =
      read_file(std::filesystem::path(ZEROLAB_TESTS) / "reference" / (name + ".json"));
  if (!text) throw std::runtime_error("cannot read tests/reference/" + name + ".json");
  return nlohmann::json::parse(*text);
}

ModelDescription described_by(const nlohmann::json& model) {
  ModelDescription description;
  description.vocab_size = model.at("vocabulary").get<Index>();
  description.sequence_length = model.at("sequence_length").get<Index>();
  if (model.at("type") == "transformer") {
    description.type = ModelDescription::Type::transformer;
    description.num_layers = model.at("layers").get<Index>();
    description.num_heads = model.at("heads").get<Index>();
    description.hidden_size = model.at("width").get<Index>();
  } else {
    description.type = ModelDescription::Type::mlp;
    description.embedding_size = model.at("embedding").get<Index>();
    description.hidden_sizes = model.at("hidden").get<std::vector<Index>>();
  }
  return description;
}

std::string text_of(const nlohmann::json& reference) {
  auto state = reference.at("text").at("seed").get<std::uint32_t>();
  std::uint32_t symbol = 0;
  std::string text;
  for (auto left = reference.at("text").at("size").get<Index>(); left > 0; --left) {
    state = 1664525U * state + 1013904223U;
    const std::uint32_t r = state >> 16;
    symbol = r % 4 == 0 ? (r >> 2) % 40 : (3 * symbol + 7) % 40;
    text.push_back(static_cast<char>(32 + symbol));
  }
  return text;
}

Index batch_start(const nlohmann::json& reference, Index step, Index position) {
  const auto words = Philox(reference.at("seed").get<std::uint64_t>())(
      static_cast<std::uint64_t>(step), static_cast<std::uint64_t>(position));
  const std::uint64_t draw = words.word[0] + (std::uint64_t{words.word[1]} << 32);
  const auto starts = reference.at("text").at("size").get<std::uint64_t>() -
                      reference.at("model").at("sequence_length").get<std::uint64_t>();
  return static_cast<Index>(draw % starts);
}

Training training_of(const nlohmann::json& reference) {
  const ModelDescription model = described_by(reference.at("model"));
  Training training;
  training.build = [model] { return build_model(model); };
  training.stage = [](Runtime& runtime) { return make_stage(runtime); };
  training.sequence_length = model.sequence_length;
  training.settings.optimizer = optimizer_of(reference);
  if (reference.contains("dtype")) training.settings.dtype = Dtype::bf16;
  training.settings.gradient_clipping = reference.at("gradient_clipping").get<double>();
  training.seed = reference.at("seed").get<std::uint64_t>();
  training.steps = static_cast<Index>(reference.at("losses").size());
  training.batches = [&reference, text = text_of(reference)](
                         Index step, Index position, Index count, Index length,
                         std::int32_t* tokens, std::int32_t* targets) {
    for (Index i = 0; i < count; ++i) {
      const Index start = batch_start(reference, step - 1, position + i);  // the file's begin at 0
      for (Index t = 0; t < length; ++t) {
        *tokens++ = text[static_cast<std::size_t>(start + t)];
        *targets++ = text[static_cast<std::size_t>(start + t + 1)];
      }
    }
  };
  return training;
}

}  // namespace zerolab::test
