// Section (e) of docs/cases.md, what comes out as one file; what goes in and out again is in
// checkpoints_test.cpp.

#include <fmt/format.h>

#include <bit>
#include <numeric>

#include "lab/temporary_folder.hpp"
#include "stages/checkpoint/merge.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/given_weights.hpp"
#include "tests/support/plain_safetensors.hpp"
#include "tests/support/saved.hpp"

using namespace zerolab;
using namespace zerolab::test;

namespace {

/// Saves after the last step, and merges.
PlainFile merged(int ranks, const Training& training, const std::filesystem::path& folder,
                 Dtype dtype = Dtype::fp32) {
  run(ranks, saving(training, folder / "ck", {training.steps}));
  const std::filesystem::path file = folder / "model.safetensors";
  merge_checkpoint(Checkpoint::open((folder / "ck").string()), file, {.dtype = dtype});
  return read_plain_safetensors(file);
}

std::size_t elements_in(const PlainFile& file) {
  std::size_t elements = 0;
  for (const auto& [name, tensor] : file.tensors) elements += tensor.bits.size();
  return elements;
}

}  // namespace

// 33, 5, 3, 1 and 0 elements among others; each element of the model is a number of its own.
TEST_CASE("B61: merged at four ranks, each element is in its place and padding nowhere",
          "[cases]") {
  std::map<std::string, Index> first;  // number in each parameter
  const std::unique_ptr<Model> model = odd_sizes_model();
  Index next = 1;
  for (const Parameter& parameter : model->parameters()) {
    first[parameter.name()] = next;
    next += parameter.numel();
  }
  for (const int stage : {0, 1, 2, 3}) {
    Training training =
        with_weights(training_of_odd_sizes(stage), [&](const Parameter& parameter, Index element) {
          return static_cast<float>(first.at(parameter.name()) + element);
        });
    training.steps = 1;
    training.settings.optimizer.learning_rate = 0;
    const TemporaryFolder folder;
    const PlainFile file = merged(4, training, folder.path());
    INFO("stage " << stage);
    CHECK(file.tensors.size() == first.size());
    for (const auto& [name, tensor] : file.tensors) {
      INFO(name);
      std::vector<std::uint32_t> expected;
      for (std::size_t i = 0; i < tensor.bits.size(); ++i) {
        expected.push_back(std::bit_cast<std::uint32_t>(
            static_cast<float>(first.at(name) + static_cast<Index>(i))));
      }
      CHECK(tensor.bits == expected);
    }
    CHECK(static_cast<Index>(elements_in(file)) == next - 1);

    // The shards have each element once too, and no padding.
    std::size_t in_shards = 0;
    const Checkpoint checkpoint = Checkpoint::open((folder.path() / "ck").string());
    for (std::size_t rank = 0; rank < 4; ++rank) {
      const PlainFile shard = read_plain_safetensors(checkpoint.file_of(rank));
      for (const auto& [name, tensor] : shard.tensors) {
        if (name.rfind("weights/", 0) == 0) in_shards += tensor.bits.size();
      }
    }
    CHECK(in_shards == elements_in(file));
  }
}

TEST_CASE("B63: a tied weight is in the merged file once, and one rank loads it for both names",
          "[cases]") {
  for (const int stage : {0, 1, 2, 3}) {
    Training training = training_of(tiny_transformer(), stage);
    training.steps = 2;
    const TemporaryFolder folder;
    const PlainFile file = merged(2, training, folder.path());
    INFO("stage " << stage);
    CHECK(file.tensors.count("head.weight") == 0);
    CHECK(file.metadata.at("head.weight") == "token_embedding.weight");
    CHECK(static_cast<Index>(elements_in(file)) == parameter_count(tiny_transformer()));

    // The loss of one rank on the loaded weights is that of the training that goes on.
    training.steps = 3;
    Training loaded = training_of(tiny_transformer(), 0);
    loaded.steps = 1;
    loaded.settings.gradient_accumulation_steps = 2;
    loaded.batches = [batches = loaded.batches](Index, Index position, Index count, Index length,
                                                std::int32_t* tokens, std::int32_t* targets) {
      batches(3, position, count, length, tokens, targets);
    };
    loaded.resume = [&](Runtime& runtime, Engine& engine) {
      load_weights(runtime, engine, (folder.path() / "model.safetensors").string());
    };
    CHECK(run(1, loaded)[0].steps[0].loss == run(2, training)[0].steps[2].loss);
  }
}

TEST_CASE("B64: frozen weights are in the merged file as they began, in the model's type",
          "[cases]") {
  const std::vector<std::string> frozen{"layers.1", "layers.3"};
  for (const int stage : {1, 2, 3}) {
    for (const Dtype dtype : {Dtype::fp32, Dtype::bf16}) {
      Training training = training_of(tiny_mlp(), stage);
      training.steps = 3;
      training.settings.dtype = dtype;
      training.build = [build = training.build, frozen] {
        std::unique_ptr<Model> model = build();
        for (const std::string& name : frozen) model->parameters().freeze(name);
        return model;
      };
      Training untrained = training;
      untrained.steps = 1;
      const States initial = states_behind(2, untrained, [](Runtime&, Engine&) {});
      const TemporaryFolder folder;
      const PlainFile file = merged(2, training, folder.path(), dtype);
      INFO("stage " << stage << ", " << name_of(dtype));
      int equal = 0;
      for (const auto& [name, tensor] : file.tensors) {
        const bool is_frozen = name.rfind("layers.1.", 0) == 0 || name.rfind("layers.3.", 0) == 0;
        INFO(name);
        CHECK(tensor.dtype == (dtype == Dtype::fp32 ? "F32" : "BF16"));
        CHECK((tensor.bits == initial.at("weights/" + name)) == is_frozen);
        equal += is_frozen ? 1 : 0;
      }
      CHECK(equal == 4);
    }
  }
}
