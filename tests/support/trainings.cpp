#include "tests/support/trainings.hpp"

#include <fmt/format.h>

#include <bit>

#include "stages/base/philox.hpp"
#include "stages/model/layers.hpp"
#include "stages/stages.hpp"
#include "tests/support/run_ranks.hpp"

namespace zerolab::test {
namespace {

/// Reads a parameter without elements and passes its input on.
class Idle : public Module {
 public:
  Idle(ParameterSet& parameters, std::string name)
      : Module(std::move(name)),
        nothing_(own(parameters.add(this->name() + ".weight", {0, 8}, Initial::normal(1)))) {}

 protected:
  Tensor do_forward(const Tensor& input) override {
    weight(nothing_);
    return input;
  }
  Tensor do_backward(const Tensor& output_gradient) override {
    add_gradient(nothing_, [](Values) {});
    return output_gradient;
  }

 private:
  Parameter& nothing_;
};

/// Tokens [sequences, 1] -> embedding 11 x 3 (33 elements) -> norm (3, 3) -> linear 3 -> 1 (3, 1)
/// -> linear 1 -> 5 (5, 5) -> idle (0) -> linear 5 -> 11 (55, 11).
class OddSizes : public Module {
 public:
  explicit OddSizes(ParameterSet& parameters)
      : Module("odd"),
        embedding_(parameters, "embedding", kOddVocabulary, 3, Initial::normal(1)),
        norm_(parameters, "norm", 3),
        narrow_(parameters, "narrow", 3, 1, Initial::normal(1)),
        widen_(parameters, "widen", 1, 5, Initial::normal(1)),
        idle_(parameters, "idle"),
        head_(parameters, "head", 5, kOddVocabulary, Initial::normal(1)) {
    for (Module* child : chain()) adopt(*child);
  }

 protected:
  Tensor do_forward(const Tensor& tokens) override {
    Tensor x = tokens;
    for (Module* child : chain()) x = child->forward(x);
    return x;
  }
  Tensor do_backward(const Tensor& logits_gradient) override {
    Tensor dx = logits_gradient;
    std::vector<Module*> order = chain();
    for (auto child = order.rbegin(); child != order.rend(); ++child) dx = (*child)->backward(dx);
    return {};
  }

 private:
  std::vector<Module*> chain() { return {&embedding_, &norm_, &narrow_, &widen_, &idle_, &head_}; }

  Embedding embedding_;
  LayerNorm norm_;
  Linear narrow_, widen_;
  Idle idle_;
  Linear head_;
};

Training ten_steps(int stage, Index vocabulary) {
  Training training;
  training.settings.micro_batch = 3;
  training.settings.zero.stage = stage;
  training.settings.zero.overlap_comm = stage == 3;
  training.settings.zero.reduce_bucket_size = 500;
  // DeepSpeed's defaults would keep such small models whole all the time.
  training.settings.zero.contiguous_gradients = false;
  training.settings.zero.prefetch_bucket_size = 0;
  training.settings.zero.param_persistence_threshold = 0;
  training.settings.zero.max_reuse_distance = 0;
  training.settings.optimizer.learning_rate = 1e-2F;
  training.settings.optimizer.weight_decay = 0.01F;
  training.stage = [](Runtime& runtime) { return make_stage(runtime); };
  training.seed = 42;
  training.steps = 10;
  training.vocab_size = vocabulary;
  training.batches = patterned_batches(vocabulary);
  return training;
}

}  // namespace

ModelDescription tiny_transformer() {
  ModelDescription model;
  model.type = ModelDescription::Type::transformer;
  model.name = "tiny-transformer";
  model.vocab_size = 19;
  model.sequence_length = 7;
  model.num_layers = 2;
  model.num_heads = 3;
  model.hidden_size = 9;
  return model;
}

ModelDescription tiny_mlp() {
  ModelDescription model;
  model.type = ModelDescription::Type::mlp;
  model.name = "tiny-mlp";
  model.vocab_size = 13;
  model.sequence_length = 3;
  model.embedding_size = 5;
  model.hidden_sizes = {33, 5, 3, 1, 7};
  return model;
}

std::unique_ptr<Model> odd_sizes_model() {
  return std::make_unique<ModelOf<OddSizes>>(Targets::every_position);
}

BatchSource patterned_batches(Index vocabulary) {
  return [vocabulary](Index step, Index position, Index count, Index length, std::int32_t* tokens,
                      std::int32_t* targets) {
    const Philox random(7);
    for (Index i = 0; i < count; ++i) {
      const auto draw =
          random(static_cast<std::uint64_t>(step), static_cast<std::uint64_t>(position + i));
      // an arithmetic sequence modulo the vocabulary: something to learn
      for (Index t = 0; t <= length; ++t) {
        const auto token = static_cast<std::int32_t>(
            (draw.word[0] % 1000 + t * (1 + draw.word[1] % 3)) % vocabulary);
        if (t < length) tokens[i * length + t] = token;
        if (t > 0) targets[i * length + t - 1] = token;
      }
    }
  };
}

Training training_of(const ModelDescription& model, int stage) {
  Training training = ten_steps(stage, model.vocab_size);
  training.build = [model] { return build_model(model); };
  training.sequence_length = model.sequence_length;
  return training;
}

Training training_of_odd_sizes(int stage) {
  Training training = ten_steps(stage, kOddVocabulary);
  training.build = odd_sizes_model;
  training.sequence_length = 1;
  return training;
}

std::vector<NamedTraining> small_trainings() {
  return {{"transformer", [](int stage) { return training_of(tiny_transformer(), stage); }},
          {"mlp", [](int stage) { return training_of(tiny_mlp(), stage); }},
          {"odd sizes", training_of_odd_sizes}};
}

std::vector<RankReport> run(int ranks, const Training& training) {
  return run_ranks(ranks, [&](Communicator& communicator) {
    Recorder recorder(communicator.rank());
    return train(communicator, recorder, training);
  });
}

std::vector<std::string> bits(const RankReport& report) {
  std::vector<std::string> lines;
  for (const StepResult& step : report.steps) {
    lines.push_back(fmt::format("{} {:016x} {:016x} {:016x}", step.step,
                                std::bit_cast<std::uint64_t>(step.loss),
                                std::bit_cast<std::uint64_t>(step.grad_norm), step.hash));
  }
  return lines;
}

}  // namespace zerolab::test
