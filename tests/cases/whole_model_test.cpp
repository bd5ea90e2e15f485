// B17 and B70 of docs/cases.md: all weights in one file, written by a run.

#include <array>

#include "lab/temporary_folder.hpp"
#include "stages/checkpoint/consolidate.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/names_in.hpp"
#include "tests/support/saved.hpp"
#include "tests/support/scripted.hpp"
#include "tests/support/thrown.hpp"

using namespace zerolab;
using namespace zerolab::test;
namespace fs = std::filesystem;

namespace {

constexpr Index kLayer = 64;  // rows and columns

/// Eight layers, frozen, and one weight of one element: in stage 3 on eight ranks bf16 takes an
/// eighth of it all on each, and saving one layer more.
Training frozen_layers() {
  std::vector<Shape> shapes(8, Shape{kLayer, kLayer});
  shapes.push_back({1});
  const auto gradient = [](Index, const Moment&) { return 1.0F; };
  Training training = training_of_script(shapes, gradient, 3);
  training.settings.optimizer.type = OptimizerSettings::Type::adam;
  training.settings.dtype = Dtype::bf16;
  training.settings.zero.gather_16bit_weights_on_model_save = true;
  training.build = [build = training.build] {
    std::unique_ptr<Model> model = build();
    for (Parameter& parameter : model->parameters()) {
      if (parameter.numel() > 1) model->parameters().freeze(parameter.name());
    }
    return model;
  };
  training.steps = 0;
  return training;
}

/// What each rank holds at rest, and at most while it consolidates.
struct Held {
  Index at_rest = 0, at_most = 0, for_checkpoint = 0;
};
std::vector<Held> held_while_consolidating(Training training, const fs::path& file) {
  std::vector<Held> held(8);
  training.prepare = [&](Runtime& runtime, Engine& engine) {
    Held& mine = held[static_cast<std::size_t>(runtime.rank())];
    mine.at_rest = runtime.ledger.live().total();
    const HighWater high(runtime.ledger);
    rehearse_consolidation(runtime, engine);
    consolidate(runtime, engine, file);
    mine.at_most = high.bytes();
    mine.for_checkpoint = runtime.ledger.category_peak()[Category::checkpoint];
  };
  run(8, training);
  return held;
}

}  // namespace

TEST_CASE("B17: saving all weights takes what training holds and one parameter, on one rank",
          "[cases]") {
  const TemporaryFolder folder;
  const Index largest = kLayer * kLayer * 2;
  const std::vector<Held> held =
      held_while_consolidating(frozen_layers(), folder.path() / "model.safetensors");
  for (std::size_t rank = 0; rank < held.size(); ++rank) {
    INFO("rank " << rank);
    CHECK(held[rank].at_most == held[rank].at_rest + (rank == 0 ? largest : 0));
    CHECK(held[rank].for_checkpoint == (rank == 0 ? largest : 0));
  }
  // A quarter of the model is enough, and the weights are all there.
  Training within = frozen_layers();
  within.device_memory = held[0].at_rest + largest;
  CHECK(4 * within.device_memory < 9 * kLayer * kLayer * 2);
  held_while_consolidating(within, folder.path() / "again.safetensors");
  CHECK(fs::file_size(folder.path() / "again.safetensors") >= 8 * kLayer * kLayer * 2 + 2);
}

TEST_CASE("B17: memory that will not do for saving all weights is told before the first step",
          "[cases]") {
  const TemporaryFolder folder;
  Index at_rest = 0;
  for (const Held& each : held_while_consolidating(frozen_layers(), folder.path() / "model")) {
    at_rest = std::max(at_rest, each.at_rest);
  }
  Training short_by_one = frozen_layers();
  short_by_one.device_memory = at_rest + kLayer * kLayer * 2 - 1;
  const auto error = thrown_by(
      [&] { held_while_consolidating(short_by_one, folder.path() / "short.safetensors"); });
  REQUIRE(error);
  INFO(error->what());
  CHECK(error->code() == Code::out_of_memory);
  CHECK(contains(error->what(),
                 "rank 0 is out of device memory: 8.00 KiB (8192) for 0.weight "
                 "[checkpoint]"));
  CHECK(contains(error->what(), "short by 1"));
  CHECK(contains(error->what(), "in set_up"));
  CHECK(names_in(folder.path()) == std::vector<std::string>{"model"});
}

TEST_CASE("B70: in stage 3 a model of placeholders is never written, nor anything else",
          "[cases]") {
  for (const int stage : std::array{0, 1, 2, 3}) {
    for (const bool gather : {false, true}) {
      const TemporaryFolder folder;
      Training training = training_of(tiny_mlp(), stage);
      training.settings.dtype = Dtype::bf16;
      training.settings.zero.gather_16bit_weights_on_model_save = gather;
      training.steps = 1;
      Index elements = 0;
      training.after_step = [&](Runtime& runtime, Engine& engine) {
        if (runtime.rank() == 0) elements = engine.model().parameters().numel();
        consolidate(runtime, engine, folder.path() / "model.safetensors");
      };
      const auto error = thrown_by([&] { run(3, training); });
      INFO("stage " << stage << ", gather " << gather);
      if (stage == 3 && !gather) {
        REQUIRE(error);
        CHECK(error->code() == Code::not_gathered_on_save);
        CHECK(contains(error->way_out(), "stage3_gather_16bit_weights_on_model_save"));
        CHECK(contains(error->way_out(), "zerolab merge"));
        CHECK(names_in(folder.path()).empty());
      } else {
        CHECK_FALSE(error);
        CHECK(names_in(folder.path()) == std::vector<std::string>{"model.safetensors"});
        CHECK(static_cast<Index>(fs::file_size(folder.path() / "model.safetensors")) >=
              2 * elements);
      }
    }
  }
}
