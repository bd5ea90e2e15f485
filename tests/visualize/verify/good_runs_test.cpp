// Two hundred runs with nothing wrong in them raise no alarm.

#include <fmt/format.h>

#include "lab/temporary_folder.hpp"
#include "stages/base/philox.hpp"
#include "stages/engine/gathered_parameters.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/described_training.hpp"
#include "tests/support/logged_saves.hpp"
#include "tests/support/random_model.hpp"
#include "visualize/verify/replay.hpp"

namespace zerolab::test {
namespace {

/// What verify says of a run, a line for each kind; nothing is fine.
std::string alarms(const LoggedRun& run) {
  const TemporaryFolder folder;
  run.write(folder.path());
  const verify::Verdict verdict = verify::replay(log::read_run_folder(folder.path()));
  std::string text;
  for (const auto& [kind, first] : verdict.violations) {
    text +=
        fmt::format("\n{}: {}:{}: {}", verify::info(kind).name, first.file, first.line, first.text);
  }
  for (const std::string& remark : verdict.remarks) text += "\n" + remark;
  return text;
}

/// Draws that a number decides.
class Draw {
 public:
  explicit Draw(std::uint64_t number) : random_(number) {}
  Index below(Index n) { return static_cast<Index>(random_(2, count_++).word[0]) % n; }
  bool one_in(Index n) { return below(n) == 0; }

 private:
  Philox random_;
  std::uint64_t count_ = 0;
};

/// Settings that random models (tests/support/random_model.hpp) do not vary.
void vary(Draw& draw, Training& training) {
  Settings& settings = training.settings;
  if (draw.one_in(4)) settings.communication_data_type = Dtype::fp32;
  if (draw.one_in(4)) settings.grad_accum_dtype = Dtype::fp32;
  settings.zero.reduce_every_micro_step = draw.one_in(3);
  settings.activation_checkpointing = draw.one_in(2);
  training.check_collectives = draw.one_in(4);
  training.steps = 1 + draw.below(3);
  if (draw.one_in(2)) {
    training.validation = training.batches;
    training.validation_sequences = 1 + draw.below(9);
    training.validate_every = draw.below(2);
  }
  if (draw.one_in(2)) {
    training.generate = Sampling{.count = 3, .prompt = "\1"};
    training.generate_every = draw.below(2);
  }
}

struct Drawn {
  int ranks;
  Training training;
};

Drawn random_run(std::uint64_t number) {
  Draw draw(number);
  const int stage = static_cast<int>(draw.below(5));  // stage 3 has most to go wrong
  Training training;
  if (draw.one_in(2)) {
    training = training_of(draw.one_in(2) ? tiny_transformer() : tiny_mlp(), std::min(stage, 3));
    const Index type = draw.below(3);
    training.settings.dtype = type == 0 ? Dtype::bf16 : type == 1 ? Dtype::fp16 : Dtype::fp32;
    if (draw.one_in(2)) {
      const auto build = training.build;
      training.build = [build] {
        std::unique_ptr<Model> model = build();
        model->parameters().freeze(model->parameters()[1].name());
        return model;
      };
    }
  } else {
    const DescribedModel model = random_model(number);
    const bool registered = draw.one_in(2) || borrows_in_leaf(model);
    training = training_of_described(model, std::min(stage, 3));
    training.vocab_size = model.vocabulary;
    training.build = [=] { return build_described(model, registered); };
    training.settings.zero.auto_register_external_parameters = !registered;
  }
  randomize_settings(number, training);
  vary(draw, training);
  return {1 + static_cast<int>(draw.below(4)), training};
}

TEST_CASE("200 random runs with nothing wrong in them raise no alarm", "[verify]") {
  for (std::uint64_t number = 0; number < 200; ++number) {
    const Drawn drawn = random_run(number);
    INFO("run " << number << ": " << drawn.ranks << " ranks, stage "
                << drawn.training.settings.zero.stage);
    CHECK(alarms(logged_run(drawn.ranks, drawn.training)) == "");
  }
}

TEST_CASE(
    "12 random runs that save, and go on at another stage and number of ranks, raise no alarm",
    "[verify]") {
  for (std::uint64_t number = 0; number < 12; ++number) {
    Drawn drawn = random_run(number);
    Training& training = drawn.training;
    const TemporaryFolder folder;
    INFO("run " << number << ": " << drawn.ranks << " ranks, stage "
                << training.settings.zero.stage);
    CHECK(alarms(logged_saves(drawn.ranks, training, folder.path())) == "");
    const std::string tag = fmt::format(":global_step{}", training.steps);
    training.steps += 2;
    training.settings.zero.stage = static_cast<int>(number % 4);
    const int ranks = 1 + drawn.ranks % 4;
    INFO("resumed at " << ranks << " ranks, stage " << number % 4);
    CHECK(alarms(logged_saves(ranks, training, folder.path(), folder.path().string() + tag)) == "");
  }
}

TEST_CASE("gather scopes before the first step, and a pass inside of one, raise no alarm",
          "[verify]") {
  for (const int stage : {0, 1, 2, 3}) {
    Training training = training_of(tiny_transformer(), stage);
    training.steps = 2;
    training.settings.zero.prefetch_bucket_size = 200;
    training.settings.zero.param_persistence_threshold = 10;
    training.prepare = [batches = training.batches](Runtime& runtime, Engine& engine) {
      ParameterSet& parameters = engine.model().parameters();
      const GatheredParameters read(runtime, engine.stage(),
                                    {&parameters[0], &parameters.at("final_norm.bias")});
      engine.evaluate(batches, 5);
      const GatheredParameters written(runtime, engine.stage(), {&parameters[5]}, 1);
    };
    const LoggedRun run = logged_run(3, training);
    if (stage == 3) run.find(2, {{"cause", "gather_scope"}, {"to", "AVAILABLE"}});  // or it throws
    CHECK(alarms(run) == "");
  }
}

TEST_CASE("a run with steps that were skipped raises no alarm", "[verify]") {
  for (const int stage : {0, 1, 2, 3}) {
    Training training = training_of(tiny_mlp(), stage);
    training.settings.dtype = Dtype::fp16;
    training.settings.loss_scale.initial_scale_power = 30;  // the first steps overflow
    training.settings.zero.param_persistence_threshold = 40;
    const LoggedRun run = logged_run(3, training);
    CHECK(run.summary["skipped_steps"] > 0);
    CHECK(alarms(run) == "");
  }
}

}  // namespace
}  // namespace zerolab::test
