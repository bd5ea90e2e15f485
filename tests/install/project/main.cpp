// Trains a model with an own layer under an own stage, and under two of zerolab's: all must give
// the same bits. Exit status 1 if they do not, zerolab's own if a run fails.

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstdlib>
#include <span>

#include "own_layer.hpp"
#include "own_stage.hpp"
#include "stages/comm/job.hpp"
#include "stages/engine/gathered_parameters.hpp"
#include "stages/engine/training.hpp"
#include "stages/model/layers.hpp"
#include "stages/stages.hpp"

using namespace zerolab;

namespace {

constexpr int kRanks = 3;
constexpr Index kVocabulary = 17;
constexpr Index kWidth = 11;

/// Tokens int32 [sequences, length] -> logits [sequences * length, vocabulary].
class Network : public Module {
 public:
  explicit Network(ParameterSet& parameters)
      : Module("network"),
        embedding_(parameters, "embedding", kVocabulary, kWidth, Initial::normal(1)),
        scale_(parameters, "scale", kWidth),
        gelu_("gelu"),
        head_(parameters, "head", kWidth, kVocabulary, Initial::normal(0.1)) {
    adopt(embedding_);
    adopt(scale_);
    adopt(gelu_);
    adopt(head_);
  }

 protected:
  // Children run through forward() and backward(), never do_...: that is where stages listen.
  Tensor do_forward(const Tensor& tokens) override {
    return head_.forward(gelu_.forward(scale_.forward(embedding_.forward(tokens))));
  }
  Tensor do_backward(const Tensor& logits_gradient) override {
    return embedding_.backward(scale_.backward(gelu_.backward(head_.backward(logits_gradient))));
  }

 private:
  Embedding embedding_;
  own::Scale scale_;
  Gelu gelu_;
  Linear head_;
};

/// Sequences that count up, each from a start of its own. What a batch holds may depend on step and
/// position only: then every rank gets different data, and every stage the same.
void counting(Index step, Index position, Index count, Index length, std::int32_t* tokens,
              std::int32_t* targets) {
  for (Index i = 0; i < count * length; ++i) {
    const Index start = 31 * step + 7 * (position + i / length);
    tokens[i] = static_cast<std::int32_t>((start + i % length) % kVocabulary);
    targets[i] = static_cast<std::int32_t>((start + i % length + 1) % kVocabulary);
  }
}

/// Starts every token at a direction of its own. A weight is written through a scope that holds it
/// whole, the same way under every stage.
void write_embedding(Runtime& runtime, Engine& engine) {
  Parameter& embedding = engine.model().parameters().at("embedding.weight");
  const GatheredParameters scope(runtime, engine.stage(), {&embedding}, 0);  // rank 0 writes
  if (runtime.rank() != 0) return;
  std::vector<float> values = read_in_scope(runtime, embedding);
  std::fill(values.begin(), values.end(), 0.0F);
  for (Index t = 0; t < kVocabulary; ++t) {
    values[static_cast<std::size_t>(t * kWidth + t % kWidth)] = t < kWidth ? 1.0F : -1.0F;
  }
  write_in_scope(runtime, embedding, values);
}  // now every rank has rank 0's values, and trains on them

Training ten_steps(std::function<std::unique_ptr<Stage>(Runtime&)> stage) {
  Training training;
  training.build = [] { return std::make_unique<ModelOf<Network>>(Targets::every_position); };
  training.stage = std::move(stage);
  training.sequence_length = 5;
  training.settings.micro_batch = 2;
  training.settings.optimizer.learning_rate = 1e-2F;
  training.settings.zero.reduce_bucket_size = 100;  // so that there are several buckets
  training.seed = 1;
  training.steps = 10;
  training.batches = counting;
  training.prepare = write_embedding;
  return training;
}

/// One report a rank. Ends the program if the run fails: the report says why and what to do.
std::vector<RankReport> run(const Training& training) {
  std::vector<RankReport> reports(kRanks);
  const int status = run_threads(kRanks, [&](int rank) {
    RankProgram program;
    program.body = [&, rank](Communicator& communicator) {
      Recorder recorder(rank);
      reports[static_cast<std::size_t>(rank)] = train(communicator, recorder, training);
    };
    program.report = [](const Communicator&, const Error& error) {
      fmt::print(stderr, "{}\n", error.what());
    };
    return program;
  });
  if (status != 0) std::exit(status);
  return reports;
}

bool same_bits(const RankReport& a, const RankReport& b) {
  const auto bits = [](double value) { return std::bit_cast<std::uint64_t>(value); };
  bool same = a.steps.size() == b.steps.size();
  for (std::size_t i = 0; same && i < a.steps.size(); ++i) {
    const StepResult& x = a.steps[i];
    const StepResult& y = b.steps[i];
    same =
        bits(x.loss) == bits(y.loss) && bits(x.grad_norm) == bits(y.grad_norm) && x.hash == y.hash;
  }
  return same;
}

Index model_states(const MemoryUse& use) {
  return use.steady[Category::parameters] + use.steady[Category::gradients] +
         use.steady[Category::optimizer];
}

void print_row(const char* name, const std::vector<RankReport>& reports) {
  const std::vector<StepResult>& steps = reports[0].steps;
  fmt::print("{:16} {:.4f} -> {:.4f}  {:.4f}  {:016x}", name, steps.front().loss, steps.back().loss,
             steps.back().grad_norm, steps.back().hash);
  for (const MemoryUse& use : reports[0].memory) fmt::print(" {:6}", model_states(use));
  fmt::print("\n");
}

}  // namespace

int main() {
  const auto stage = [](int number) {
    return [number](Runtime& runtime) { return make_stage(number, runtime); };
  };
  const auto own_stage = [](Runtime& runtime) {
    return std::make_unique<own::ParameterServer>(runtime);
  };
  const std::vector<RankReport> baseline = run(ten_steps(stage(0)));
  const std::vector<RankReport> zero3 = run(ten_steps(stage(3)));
  const std::vector<RankReport> server = run(ten_steps(own_stage));

  fmt::print("{:16} {:16}  {:6}  {:16} model states of ranks 0, 1, 2 in bytes\n", "", "loss",
             "norm", "hash");
  print_row("stage 0", baseline);
  print_row("stage 3", zero3);
  print_row("parameter server", server);

  const bool same = same_bits(zero3[0], baseline[0]) && same_bits(server[0], baseline[0]);
  fmt::print("bit-identical: {}\n", same ? "yes" : "NO");
  return same ? 0 : 1;
}
