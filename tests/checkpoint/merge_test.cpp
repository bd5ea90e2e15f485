// A merged file is read here by a reader that shares nothing with the one that wrote it
// (support/plain_safetensors.hpp).

#include "stages/checkpoint/merge.hpp"

#include <fmt/format.h>

#include <bit>

#include "lab/temporary_folder.hpp"
#include "stages/base/read_file.hpp"
#include "stages/checkpoint/consolidate.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/described_training.hpp"
#include "tests/support/plain_safetensors.hpp"
#include "tests/support/saved.hpp"
#include "tests/support/sixteen_bits.hpp"
#include "tests/support/sparse_checkpoint.hpp"
#include "tests/support/thrown.hpp"
#include "tests/support/tiny_tied.hpp"

using namespace zerolab;
using namespace zerolab::test;

namespace {

constexpr std::array kStages{0, 1, 2, 3};
constexpr std::array kDtypes{Dtype::fp32, Dtype::bf16, Dtype::fp16};

/// Three linear layers of 5 and 7 columns; the middle one and a bias are frozen.
Training half_frozen(int stage) {
  DescribedModel model;
  model.width = 5;
  model.parts = {linear_part("first", 5, 7), linear_part("second", 7, 7), gelu_part("bend", 7),
                 linear_part("head", 7, model.vocabulary)};
  model.frozen = {"embedding.weight", "second.weight", "second.bias", "head.bias"};
  return training_of_described(model, stage);
}

/// With padding, empty shards and parameters, tied and frozen ones.
std::vector<NamedTraining> trainings() {
  std::vector<NamedTraining> all = small_trainings();
  all.push_back({"half frozen", half_frozen});
  all.push_back({"tied", [](int stage) { return training_of_chain(tiny_tied, 4, stage); }});
  return all;
}

Training short_run(const NamedTraining& each, int stage, Dtype dtype) {
  Training training = each.training(stage);
  training.steps = 2;
  training.settings.dtype = dtype;
  training.settings.loss_scale.initial_scale_power = 4;
  training.settings.zero.gather_16bit_weights_on_model_save = true;
  return training;
}

/// As encoded() rounds it, and widened again.
std::uint32_t rounded_once(std::uint32_t bits, Dtype to) {
  if (to == Dtype::fp32) return bits;
  const Format& format = to == Dtype::bf16 ? kBf16 : kFp16;
  const std::uint16_t result = encoded(format, std::bit_cast<float>(bits));
  return std::bit_cast<std::uint32_t>(static_cast<float>(decoded(format, result)));
}

std::string_view format_name(Dtype dtype) {
  return dtype == Dtype::fp32 ? "F32" : dtype == Dtype::bf16 ? "BF16" : "F16";
}

/// What is not as it should be; `states` are those that were saved from.
std::string wrong_in(const PlainFile& file, const States& states, Dtype of, Dtype to,
                     const std::vector<std::pair<std::string, Shape>>& parameters) {
  if (file.tensors.size() != parameters.size()) {
    return fmt::format("{} tensors of {}", file.tensors.size(), parameters.size());
  }
  for (const auto& [name, shape] : parameters) {
    const auto found = file.tensors.find(name);
    if (found == file.tensors.end()) return name + " is missing";
    const PlainTensor& tensor = found->second;
    if (tensor.shape != shape) return name + " has another shape";
    if (tensor.dtype != format_name(to)) return name + " is " + tensor.dtype;
    const std::string state = (to == of ? "weights/" : "exact/") + name;
    std::vector<std::uint32_t> expected;
    if (states.count(state) > 0) expected = states.at(state);
    for (std::uint32_t& bits : expected) bits = rounded_once(bits, to);
    if (tensor.bits != expected) return name + " has other values";
  }
  return {};
}

std::vector<std::pair<std::string, Shape>> parameters_of(const Training& training) {
  std::vector<std::pair<std::string, Shape>> all;
  const std::unique_ptr<Model> model = training.build();
  for (const Parameter& parameter : model->parameters()) {
    all.emplace_back(parameter.name(), parameter.shape());
  }
  return all;
}

PlainFile merged(const std::filesystem::path& folder, Dtype dtype) {
  const std::filesystem::path file = folder / "merged.safetensors";
  merge_checkpoint(Checkpoint::open((folder / "ck").string()), file, {.dtype = dtype});
  return read_plain_safetensors(file);
}

void expect_merged_as_live(const NamedTraining& each, int ranks, int stage, Dtype of) {
  const Training training = short_run(each, stage, of);
  const TemporaryFolder folder;
  const States states = saved_states(ranks, training, folder.path() / "ck");
  for (const Dtype to : kDtypes) {
    INFO(each.name << ", stage " << stage << ", " << ranks << " ranks, " << name_of(of)
                   << " merged as " << name_of(to));
    CHECK(wrong_in(merged(folder.path(), to), states, of, to, parameters_of(training)) == "");
  }
}

std::string bytes_in(const std::filesystem::path& file) { return read_file(file).value(); }

}  // namespace

TEST_CASE("merged weights are the live ones bit for bit, and rounded once into another type") {
  int turn = 0;
  for (const NamedTraining& each : trainings()) {
    for (const int ranks : {3, 4}) {
      const int stage = turn % 4;
      const Dtype of = kDtypes[static_cast<std::size_t>(turn++ % 3)];
      expect_merged_as_live(each, ranks, stage, of);
    }
  }
}

TEST_CASE("merged weights are the live ones bit for bit, in every stage and type", "[slow]") {
  for (const NamedTraining& each : trainings()) {
    for (const int stage : kStages) {
      for (const Dtype of : kDtypes) {
        for (const int ranks : {3, 4}) expect_merged_as_live(each, ranks, stage, of);
      }
    }
  }
}

TEST_CASE("all weights in one file are the same bytes, saved by the ranks or merged") {
  int turn = 0;
  for (const NamedTraining& each : trainings()) {
    for (const int stage : {turn % 2, 3 - turn % 2}) {
      const Dtype dtype = kDtypes[static_cast<std::size_t>(turn++ % 3)];
      const TemporaryFolder folder;
      const std::filesystem::path saved = folder.path() / "saved.safetensors";
      const nlohmann::ordered_json run{{"model", {{"name", each.name}}}};
      Training training = short_run(each, stage, dtype);
      training.after_step = [&](Runtime& runtime, Engine& engine) {
        save_checkpoint(runtime, engine, {.folder = folder.path() / "ck", .run = run});
        consolidate(runtime, engine, saved, run);
      };
      test::run(3, training);
      INFO(each.name << ", stage " << stage << ", " << name_of(dtype));
      merged(folder.path(), dtype);
      const bool same = bytes_in(saved) == bytes_in(folder.path() / "merged.safetensors");
      CHECK(same);
    }
  }
}

TEST_CASE("a merge reads what it needs once, however many shards a small parameter lies in") {
  std::vector<SavedParameter> parameters;
  for (int i = 0; i < 2000; ++i) parameters.push_back({fmt::format("small.{}", i), {37, 41}, true});
  const TemporaryFolder folder;
  write_sparse_checkpoint(folder.path(), parameters, 4);
  const Checkpoint checkpoint = Checkpoint::open(folder.path().string());
  REQUIRE(checkpoint.bytes() > 11'000'000);
  const MergeReport report = merge_checkpoint(
      checkpoint, folder.path() / "m", {.max_memory = least_merge_memory(checkpoint.manifest())});
  CHECK(report.parameters == 2000);
  CHECK(report.elements == 2000 * 37 * 41);
  CHECK(report.bytes_read == checkpoint.bytes());
}

TEST_CASE("a merge of less memory than it needs is refused with what it needs") {
  const TemporaryFolder folder;
  write_sparse_checkpoint(folder.path(), {{"w", {5}, true}}, 3);
  const Checkpoint checkpoint = Checkpoint::open(folder.path().string());
  const Index least = least_merge_memory(checkpoint.manifest());
  const auto merge_in = [&](Index memory) {
    return thrown_by(
        [&] { merge_checkpoint(checkpoint, folder.path() / "m", {.max_memory = memory}); });
  };
  CHECK_FALSE(merge_in(least).has_value());
  const std::optional<Error> error = merge_in(least - 1);
  REQUIRE(error.has_value());
  CHECK(error->code() == Code::usage);
  CHECK(contains(error->way_out(), "--max-memory 14MiB"));
}

TEST_CASE("a merge loses no weight to a type that cannot hold it, and leaves nothing behind") {
  const TemporaryFolder folder;
  Training training = training_of(tiny_mlp(), 3);
  training.steps = 1;
  training.prepare = [](Runtime&, Engine& engine) {
    for (const OwnedSlice& slice : engine.stage().owned()) {
      if (slice.parameter->name() == "layers.5.bias" && slice.range.begin == 0) {
        slice.master[1] = -70000;
      }
    }
  };
  saved_states(3, training, folder.path() / "ck");
  const auto merge_as = [&](Dtype dtype) {
    return thrown_by([&] { merged(folder.path(), dtype); });
  };
  CHECK_FALSE(merge_as(Dtype::bf16).has_value());
  std::filesystem::remove(folder.path() / "merged.safetensors");
  const std::optional<Error> error = merge_as(Dtype::fp16);
  REQUIRE(error.has_value());
  CHECK(error->code() == Code::checkpoint_mismatch);
  CHECK(contains(error->what_happened(), "'layers.5.bias'"));
  CHECK(std::distance(std::filesystem::directory_iterator(folder.path()),
                      std::filesystem::directory_iterator()) == 1);
}

TEST_CASE("a merge into the checkpoint's own folder, or over a folder, is refused") {
  const TemporaryFolder folder;
  write_sparse_checkpoint(folder.path(), {{"w", {5}, true}}, 3);
  const Checkpoint checkpoint = Checkpoint::open(folder.path().string());
  const auto code_at = [&](const std::filesystem::path& file) {
    return thrown_by([&] { merge_checkpoint(checkpoint, file, {}); })->code();
  };
  CHECK(code_at(checkpoint.folder() / "rank0.safetensors") == Code::usage);
  CHECK(code_at(folder.path()) == Code::checkpoint_write);
  CHECK_FALSE(
      thrown_by([&] { Checkpoint::open(folder.path().string()); }).has_value());  // untouched
}
