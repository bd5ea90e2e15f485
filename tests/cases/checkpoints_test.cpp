// Kind e of docs/cases.md, and what belongs to checkpoints in the others: saved by all, resumed by
// any number.

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <set>

#include "lab/temporary_folder.hpp"
#include "stages/checkpoint/consolidate.hpp"
#include "stages/stages.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/layers.hpp"
#include "tests/support/names_in.hpp"
#include "tests/support/run_job.hpp"
#include "tests/support/run_ranks.hpp"
#include "tests/support/saved.hpp"
#include "tests/support/scripted.hpp"
#include "tests/support/thrown.hpp"

using namespace zerolab;
using namespace zerolab::test;
namespace fs = std::filesystem;

namespace {

constexpr std::array kSharded{1, 2, 3};
constexpr std::array kStages{0, 1, 2, 3};

/// Gradients that differ from element to element, step to step and rank to rank.
float different(Index element, const Moment& moment) {
  return static_cast<float>((element * 7 + moment.step * 3 + moment.rank) % 11 - 5) / 4;
}

/// Adam on parameters of these shapes.
Training training_of_shapes(const std::vector<Shape>& shapes, int stage) {
  Training training = training_of_script(shapes, different, stage);
  training.settings.optimizer.type = OptimizerSettings::Type::adam;
  training.settings.optimizer.learning_rate = 0.01F;
  return training;
}

struct Saved {
  States states;
  TrainingProgress progress;
};

void look(Saved& into, Runtime& runtime, Engine& engine) {
  States states = states_of(runtime, engine);
  if (runtime.rank() == 0) into = {std::move(states), engine.progress()};
}

/// Trains so many steps and saves; what was saved.
Saved save_after(Index steps, int ranks, Training training, const fs::path& folder) {
  Saved saved;
  training.steps = steps;
  training.after_step = [&saved, save = saving(training, folder, {steps}).after_step, steps](
                            Runtime& runtime, Engine& engine) {
    save(runtime, engine);
    if (engine.steps_done() == steps) look(saved, runtime, engine);
  };
  run(ranks, training);
  return saved;
}

/// What a training has right behind loading.
Saved loaded_by(int ranks, Training training, const fs::path& folder) {
  Saved loaded;
  training = resuming(training, folder.string());
  training.resume = [&loaded, resume = training.resume](Runtime& runtime, Engine& engine) {
    resume(runtime, engine);
    look(loaded, runtime, engine);
  };
  training.steps = 0;
  run(ranks, training);
  return loaded;
}

bool equal(const Saved& a, const Saved& b) {
  return a.states == b.states && a.progress.steps_done == b.progress.steps_done &&
         a.progress.updates_done == b.progress.updates_done;
}

Training in_bf16(Training training, bool is_wanted = true) {
  if (is_wanted) training.settings.dtype = Dtype::bf16;
  return training;
}

JobEnd train_job(int ranks, const std::function<Training(int rank)>& training) {
  constexpr std::chrono::milliseconds kPatience{500};
  const auto body = [&](Communicator& communicator) {
    Recorder recorder(communicator.rank());
    train(communicator, recorder, training(communicator.rank()));
  };
  return run_job(ranks, body, {.timeout = kPatience});
}

// --- B25 -----------------------------------------------------------------------------------------

struct Read {
  Index bytes = 0, files = 0;
};
std::vector<Read> read_by(int ranks, Training training, const fs::path& folder) {
  std::vector<Read> reads(static_cast<std::size_t>(ranks));
  training.steps = 0;
  training.resume = [&](Runtime& runtime, Engine& engine) {
    const LoadReport report = load_checkpoint(runtime, engine, Checkpoint::open(folder.string()));
    reads[static_cast<std::size_t>(runtime.rank())] = {report.bytes, report.files};
  };
  run(ranks, training);
  return reads;
}

// --- B64 -----------------------------------------------------------------------------------------

/// Layers "a", "b"... of odd widths, some of them frozen.
Training layers(const std::string& names, const std::string& frozen, int stage) {
  const Chain chain = [names](ParameterSet& parameters) {
    Links links{embedding(parameters, 7, 5)};
    for (const char name : names) links.push_back(linear(parameters, std::string(1, name), 5, 5));
    links.push_back(linear(parameters, "head", 5, 7));
    return links;
  };
  Training training = training_of_chain(chain, 7, stage);
  training.build = [build = training.build, frozen] {
    std::unique_ptr<Model> model = build();
    for (const char name : frozen) model->parameters().freeze(std::string(1, name));
    return model;
  };
  return training;
}

// --- B67 -----------------------------------------------------------------------------------------

struct Tagged {
  std::string error;
  std::vector<SaveReport> reports{3};
  std::vector<std::string> tags;  // in the folder
  bool folder = false;            // is there
};
/// A tag made of the loss, which differs in the last rank only from the first one's.
Tagged save_under_own_tags(TagValidation validation, int stage) {
  const TemporaryFolder folder;
  const fs::path checkpoints = folder.path() / "ck";
  Tagged result;
  Training training = training_of(tiny_mlp(), stage);
  training.settings.tag_validation = validation;
  training.steps = 1;
  training.after_step = [&](Runtime& runtime, Engine& engine) {
    const std::string tag = runtime.rank() == 2 ? "loss0.52" : "loss0.51";
    result.reports[static_cast<std::size_t>(runtime.rank())] =
        save_checkpoint(runtime, engine, {.folder = checkpoints, .tag = tag});
  };
  const auto error = thrown_by([&] { run(3, training); });
  if (error) result.error = code_name(error->code()) + " " + error->what_happened();
  result.tags = tags_in(checkpoints);
  result.folder = fs::exists(checkpoints);
  return result;
}

// --- B75 -----------------------------------------------------------------------------------------

/// fp16 from a scale at which the first steps overflow, in the middle of a warm-up.
Training warming_up(int stage) {
  Training training = training_of(tiny_transformer(), stage);
  training.settings.dtype = Dtype::fp16;
  training.settings.loss_scale.initial_scale_power = 24;
  training.settings.loss_scale.loss_scale_window = 3;
  training.settings.gradient_accumulation_steps = 2;
  training.settings.schedule.type = ScheduleSettings::Type::warmup;
  training.settings.schedule.warmup_num_steps = 9;
  training.steps = 18;
  return training;
}

std::vector<std::string> told_of(const RankReport& report, std::size_t from) {
  std::vector<std::string> lines;
  for (std::size_t i = from; i < report.steps.size(); ++i) {
    const StepResult& step = report.steps[i];
    lines.push_back(fmt::format("{} lr {} scale {} skipped {} hash {:016x}", step.step,
                                step.learning_rate, step.scale, step.skipped, step.hash));
  }
  return lines;
}

/// The same twelve sequences in every step, whatever the number of ranks.
Training of_12_sequences(Training training, int ranks) {
  training.settings.micro_batch = 1;
  training.settings.gradient_accumulation_steps = 12 / ranks;
  return training;
}

}  // namespace

TEST_CASE("B25: at the same number of ranks each reads its own file and no other", "[cases]") {
  const std::vector<Shape> shapes(3, Shape{33, 7});
  for (const int from : kSharded) {
    const TemporaryFolder folder;
    save_after(1, 4, training_of_shapes(shapes, from), folder.path());
    const Checkpoint checkpoint = Checkpoint::open(folder.path().string());
    const int to = from == 3 ? 3 : 3 - from;  // stages 1 and 2 cut alike
    const std::vector<Read> reads = read_by(4, training_of_shapes(shapes, to), folder.path());
    for (std::size_t rank = 0; rank < 4; ++rank) {
      INFO("stage " << from << " to " << to << ", rank " << rank);
      CHECK(reads[rank].files == 1);
      CHECK(reads[rank].bytes == checkpoint.manifest().shards[rank].digest.bytes);
    }
  }
}

// 4.5 MiB a state, so that a file has many blocks.
TEST_CASE("B25: at another number of ranks each reads what it keeps, to whole blocks", "[cases]") {
  constexpr Index kElements = 9 << 17;
  constexpr Index kStates = 3;
  for (const int stage : {1, 3}) {
    // In stage 3 every parameter is cut by itself.
    const std::vector<Shape> shapes =
        stage == 3 ? std::vector<Shape>{{kElements}} : std::vector<Shape>(3, Shape{kElements / 3});
    const TemporaryFolder folder;
    save_after(1, 4, training_of_shapes(shapes, stage), folder.path());
    const Index all = Checkpoint::open(folder.path().string()).bytes();
    for (const Read& read : read_by(3, training_of_shapes(shapes, stage), folder.path())) {
      INFO("stage " << stage << ": " << read.bytes << " of " << all << " bytes, " << read.files
                    << " files");
      const Index kept = kElements / 3 * kStates * 4;
      CHECK(read.files <= 2);
      CHECK(read.bytes >= kept);
      CHECK(read.bytes <= kept + kStates * read.files * kBlockBytes);
      CHECK(read.bytes < all * 5 / 6);
    }
  }
}

TEST_CASE("B54: a save that only one rank calls is told, by rank and step, and marks nothing",
          "[cases]") {
  for (const int stage : {2, 3}) {
    for (const int alone : {0, 2}) {
      const TemporaryFolder folder;
      const JobEnd ended = train_job(3, [&](int rank) {
        Training training = training_of(tiny_mlp(), stage);
        training.check_collectives = true;
        if (rank == alone) training = saving(training, folder.path() / "ck", {2});
        return training;
      });
      INFO("stage " << stage << ", rank " << alone << ": " << ended.message);
      CHECK(ended.status == 7);
      CHECK(contains(ended.message, "ZL706"));
      CHECK(contains(ended.message, fmt::format("\n  rank {} is at control ", alone)));
      CHECK(contains(ended.message, "of 'tag of the checkpoint'"));
      CHECK(contains(ended.message, "(step 2, save)"));
      CHECK(contains(ended.message, "(step 3, micro-step 0, "));
      CHECK(tags_in(folder.path() / "ck").empty());
      CHECK(names_in(folder.path() / "ck").empty());
    }
  }
}

TEST_CASE("B54: one rank that writes all weights while another saves is told", "[cases]") {
  const TemporaryFolder folder;
  const JobEnd ended = train_job(2, [&](int rank) {
    Training training = saving(training_of(tiny_mlp(), 3), folder.path() / "ck", {2});
    training.settings.zero.gather_16bit_weights_on_model_save = true;
    training.check_collectives = true;
    if (rank == 0) {
      training.after_step = [&](Runtime& runtime, Engine& engine) {
        if (engine.steps_done() < 2) return;
        consolidate(runtime, engine, folder.path() / "model.safetensors");
      };
    }
    return training;
  });
  INFO(ended.message);
  CHECK(ended.status == 7);
  CHECK(contains(ended.message, "of 'file of all weights'"));
  CHECK(contains(ended.message, "of 'tag of the checkpoint'"));
  CHECK(tags_in(folder.path() / "ck").empty());
  CHECK_FALSE(fs::exists(folder.path() / "model.safetensors"));
}

TEST_CASE("B59: eight ranks save into a new nested folder two hundred times", "[cases][slow]") {
  const TemporaryFolder folder;
  const auto nested = [&](Index step) {
    return folder.path() / fmt::to_string(step) / "deeper" / "ck";
  };
  Training training = training_of(tiny_mlp(), 2);
  training.steps = 200;
  training.after_step = [&](Runtime& runtime, Engine& engine) {
    save_checkpoint(runtime, engine, {.folder = nested(engine.steps_done())});
  };
  run(8, training);
  for (Index step = 1; step <= 200; ++step) {
    const Checkpoint checkpoint = Checkpoint::open(nested(step).string());
    CHECK(checkpoint.manifest().progress.steps_done == step);
    CHECK(checkpoint.manifest().world_size() == 8);
    CHECK(names_in(nested(step)) == std::vector<std::string>{tag_of_step(step), "latest"});
  }
}

TEST_CASE("B60: weights, masters, moments and steps are equal at any other number of ranks",
          "[cases]") {
  const std::vector<Shape> shapes{{5}, {7}, {33}};
  int turn = 0;
  for (const int from : kSharded) {
    for (const int to : kSharded) {
      const bool bf16 = ++turn % 2 == 0;
      const TemporaryFolder folder;
      const Saved saved =
          save_after(3, 2, in_bf16(training_of_shapes(shapes, from), bf16), folder.path());
      REQUIRE(saved.progress.steps_done == 3);
      REQUIRE(saved.states.at("moment2/2.weight").size() == 33);
      for (const int ranks : {1, 3, 4}) {
        INFO("stage " << from << " to " << to << ", " << ranks << " ranks, bf16 " << bf16);
        const Training other = in_bf16(training_of_shapes(shapes, to), bf16);
        CHECK(equal(loaded_by(ranks, other, folder.path()), saved));
      }
    }
  }
}

TEST_CASE("B60: a resumed run goes on as one that had that number of ranks from the beginning",
          "[cases]") {
  for (const int ranks : {1, 3, 4}) {
    for (const int stage : kSharded) {
      const TemporaryFolder folder;
      const Training first = of_12_sequences(training_of(tiny_mlp(), 4 - stage), 2);
      save_after(3, 2, first, folder.path());
      const Training second = of_12_sequences(training_of(tiny_mlp(), stage), ranks);
      const RankReport whole = run(ranks, second)[0];
      const RankReport rest = run(ranks, resuming(second, folder.path().string()))[0];
      REQUIRE(rest.steps.size() == 7);
      for (std::size_t i = 0; i < 7; ++i) {
        INFO("stage " << stage << ", " << ranks << " ranks, step " << rest.steps[i].step);
        CHECK(rest.steps[i].step == whole.steps[i + 3].step);
        CHECK(rest.steps[i].loss == Approx(whole.steps[i + 3].loss).epsilon(1e-6).margin(0));
      }
    }
  }
}

TEST_CASE("B64: frozen weights are those that were saved, whatever the seed", "[cases]") {
  for (const int stage : kSharded) {
    for (const int ranks : {2, 3}) {
      const TemporaryFolder folder;
      const Saved saved =
          save_after(3, 2, in_bf16(layers("abcd", "bd", stage), stage == 2), folder.path());
      REQUIRE(saved.states.at("weights/b.weight").size() == 25);
      REQUIRE(saved.states.count("moment1/b.weight") == 0);
      REQUIRE(saved.states.count("moment1/a.weight") == 1);
      Training other = in_bf16(layers("abcd", "bd", stage % 3 + 1), stage == 2);
      other.seed = 4711;
      INFO("stage " << stage << ", " << ranks << " ranks");
      CHECK(equal(loaded_by(ranks, other, folder.path()), saved));
    }
  }
}

TEST_CASE("B64: a checkpoint that lacks a weight of the model is refused by its name", "[cases]") {
  const auto refused = [](const std::string& saved, const std::string& model) {
    const TemporaryFolder folder;
    save_after(1, 2, layers(saved, "", 3), folder.path());
    const auto error = thrown_by([&] { loaded_by(3, layers(model, "", 3), folder.path()); });
    return error ? code_name(error->code()) + " " + error->what_happened() : "taken";
  };
  CHECK(contains(refused("abcd", "abxcd"), "ZL604"));
  CHECK(contains(refused("abcd", "abxcd"), "has no 'x.weight', which the model has"));
  CHECK(contains(refused("abcd", "abd"), "has 'c.weight', which the model has not"));
  CHECK(refused("abcd", "abcd") == "taken");
}

TEST_CASE("B67: when ranks have different tags, all stop, or all take that of rank 0", "[cases]") {
  for (const int stage : {1, 3}) {
    const std::string both = "rank 0 would save under 'loss0.51', and rank 2 under 'loss0.52'";
    const Tagged failed = save_under_own_tags(TagValidation::fail, stage);
    CHECK(failed.error == "ZL606 " + both);
    CHECK_FALSE(failed.folder);
    for (const TagValidation validation : {TagValidation::warn, TagValidation::ignore}) {
      const Tagged saved = save_under_own_tags(validation, stage);
      CHECK(saved.error.empty());
      CHECK(saved.tags == std::vector<std::string>{"loss0.51"});
      for (const SaveReport& report : saved.reports) {
        CHECK(report.tag == "loss0.51");
        CHECK(contains(report.note, both) == (validation == TagValidation::warn));
        CHECK(report.note.empty() == (validation == TagValidation::ignore));
      }
    }
  }
}

TEST_CASE("B73: one large weight and many small ones, which only some ranks have, are resumed",
          "[cases]") {
  std::vector<Shape> shapes(11, Shape{3});
  shapes[0] = {1000};
  for (const int stage : {1, 2}) {
    const TemporaryFolder folder;
    const Saved saved = save_after(2, 4, training_of_shapes(shapes, stage), folder.path());
    const Manifest manifest = Checkpoint::open(folder.path().string()).manifest();
    CHECK(manifest.shards[0].slices.size() == 1);  // of the large one
    CHECK(manifest.shards[3].slices.size() == 11);
    for (const int ranks : {1, 3, 4, 8}) {
      INFO("stage " << stage << ", " << ranks << " ranks");
      CHECK(equal(loaded_by(ranks, training_of_shapes(shapes, 3 - stage), folder.path()), saved));
    }
  }
}

TEST_CASE("B75: rate, step, scale and skipped steps go on in the middle of a warm-up", "[cases]") {
  for (const int from : kStages) {
    const int to = from < 2 ? 1 - from : 5 - from;  // which add micro-steps in the same order
    const RankReport whole = run(4, warming_up(from))[0];
    std::size_t at = 0;  // steps until behind the last skipped one, long before the end
    for (std::size_t i = 0; i < 14; ++i) {
      if (whole.steps[i].skipped) at = i + 1;
    }
    REQUIRE(at > 1);
    REQUIRE_FALSE(whole.steps[at].skipped);
    REQUIRE(whole.steps[at].learning_rate < whole.steps.back().learning_rate);
    const TemporaryFolder folder;
    const Saved saved = save_after(static_cast<Index>(at), 4, warming_up(from), folder.path());
    REQUIRE(saved.progress.updates_done > 1);
    REQUIRE(saved.progress.updates_done < saved.progress.steps_done);
    const RankReport rest = run(4, resuming(warming_up(to), folder.path().string()))[0];
    INFO("stage " << from << " to " << to << ", step " << at);
    CHECK(told_of(rest, 0) == told_of(whole, at));
  }
}

TEST_CASE("B90: weights without elements are saved, listed and resumed", "[cases]") {
  const Shape empty{0, 8};
  int turn = 0;
  for (const std::vector<Shape>& shapes :
       {std::vector<Shape>{empty, {8}, {24}}, {{8}, empty, {24}}, {{8}, {24}, empty}}) {
    for (const int from : {1, 2, 4}) {
      for (const int stage : {turn % 4, ++turn % 4}) {
        const TemporaryFolder folder;
        const Saved saved = save_after(2, from, training_of_shapes(shapes, stage), folder.path());
        const Manifest manifest = Checkpoint::open(folder.path().string()).manifest();
        std::vector<Shape> listed;
        for (const SavedParameter& each : manifest.parameters) listed.push_back(each.shape);
        CHECK(listed == shapes);
        for (const int to : {1, 2, 4}) {
          INFO("stage " << stage << ", " << from << " ranks to " << to);
          const Training other = training_of_shapes(shapes, (stage + to) % 4);
          CHECK(equal(loaded_by(to, other, folder.path()), saved));
        }
      }
    }
  }
}

TEST_CASE("B96: one rank goes on with what two have saved, bit for bit, and the other way round",
          "[cases]") {
  for (const int stage : kStages) {
    const int other = 3 - stage;
    const Training pair = training_of(tiny_mlp(), other);
    Training single = training_of(tiny_mlp(), stage);
    single.settings.gradient_accumulation_steps = 2;
    const std::vector<std::string> whole = bits(run(1, single)[0]);
    REQUIRE(bits(run(2, pair)[0]) == whole);
    const std::vector<std::string> rest(whole.begin() + 5, whole.end());
    INFO("stage " << stage);
    const TemporaryFolder of_two, of_one;
    save_after(5, 2, pair, of_two.path());
    save_after(5, 1, single, of_one.path());
    CHECK(bits(run(1, resuming(single, of_two.path().string()))[0]) == rest);
    CHECK(bits(run(2, resuming(pair, of_one.path().string()))[0]) == rest);
  }
}
