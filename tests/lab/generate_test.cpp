#include "lab/generate.hpp"

#include <fmt/format.h>

#include "lab/temporary_folder.hpp"
#include "stages/checkpoint/save.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/run_ranks.hpp"

namespace zerolab::test {
namespace {

Plan plan_of(const std::vector<std::string>& arguments, int ranks) {
  return make_plan(parse_command_line(arguments, false).options, "zerolab", ranks);
}

std::vector<RankReport> run(int ranks, const std::function<Training(int rank)>& training) {
  return run_ranks(ranks, [&](Communicator& communicator) {
    Recorder recorder(communicator.rank());
    return train(communicator, recorder, training(communicator.rank()));
  });
}

/// Three ranks train a small model of odd sizes, save it, and write; returns the text.
std::string trained(const TemporaryFolder& folder, const std::string& dtype) {
  const auto model = folder.write("model.json", R"({"name": "odd", "type": "transformer",
      "vocab_size": 256, "sequence_length": 9, "num_layers": 2, "num_heads": 3,
      "hidden_size": 15})");
  std::vector<std::string> arguments{
      "train", "--model",  model.string(), "--stage", "2",  "--steps",    "3",  "--seed",
      "5",     "--prompt", "The ",         "--top-k", "50", "--generate", "20", "--micro-batch",
      "1"};
  if (dtype != "fp32") arguments.push_back("--" + dtype);
  const Plan plan = plan_of(arguments, 3);
  const Effective effective = settings_for(plan, std::nullopt);
  const auto reports = run(3, [&](int rank) {
    Training training = training_for(plan, effective, rank);
    training.after_step = [&](Runtime& runtime, Engine& engine) {
      if (engine.steps_done() < 3) return;
      save_checkpoint(runtime, engine,
                      {.folder = folder.path() / "ck", .run = run_for_checkpoint(plan, effective)});
    };
    return training;
  });
  return reports[0].generations.at(0).text;
}

TEST_CASE("generate writes what train did, in every stage, type and number of ranks", "[lab]") {
  for (const std::string dtype : {"fp32", "bf16", "fp16"}) {
    const TemporaryFolder folder;
    const std::string text = trained(folder, dtype);
    REQUIRE(text.size() == 20);
    for (const int stage : {0, 1, 2, 3}) {
      for (const int ranks : {1, 2, 3, 4}) {
        INFO(dtype << ", stage " << stage << ", " << ranks << " ranks");
        const Plan plan =
            plan_of({"generate", "--resume", (folder.path() / "ck").string(), "--stage",
                     fmt::to_string(stage), "--prompt", "The ", "--top-k", "50", "--bytes", "20"},
                    ranks);
        const Effective effective = settings_for(plan, std::nullopt);
        const auto reports =
            run(ranks, [&](int rank) { return generating(plan, effective, rank); });
        for (const RankReport& report : reports) {
          REQUIRE(report.generations.size() == 1);
          CHECK(report.generations[0].text == text);
          CHECK(report.generations[0].step == 3);
          CHECK(report.steps.empty());
        }
      }
    }
  }
}

TEST_CASE("to generate, a rank holds its weights, and neither gradients nor optimizer", "[lab]") {
  for (const std::string dtype : {"fp32", "bf16"}) {
    const TemporaryFolder folder;
    trained(folder, dtype);
    const Index size = dtype == "fp32" ? 4 : 2;
    for (const int stage : {0, 1, 2, 3}) {
      for (const int ranks : {3, 4}) {
        INFO(dtype << ", stage " << stage << ", " << ranks << " ranks");
        const Plan plan = plan_of({"generate", "--resume", (folder.path() / "ck").string(),
                                   "--stage", fmt::to_string(stage), "--bytes", "2"},
                                  ranks);
        Index of_rank = 0;
        const std::unique_ptr<Model> model = build_model_of(plan);
        for (const Parameter& parameter : model->parameters()) {
          const Index parts = stage == 3 ? ranks : 1;
          of_rank += (parameter.numel() + parts - 1) / parts * size;
        }
        const Effective effective = settings_for(plan, std::nullopt);
        const auto reports =
            run(ranks, [&](int rank) { return generating(plan, effective, rank); });
        for (const MemoryUse& memory : reports[0].memory) {
          CHECK(memory.category_peak[Category::parameters] == of_rank);
          CHECK(memory.category_peak[Category::gradients] == 0);
          CHECK(memory.category_peak[Category::optimizer] == 0);
          CHECK(memory.category_peak[Category::reduce_buffers] == 0);
          CHECK(memory.category_peak[Category::checkpoint] == 0);
        }
      }
    }
  }
}

}  // namespace
}  // namespace zerolab::test
