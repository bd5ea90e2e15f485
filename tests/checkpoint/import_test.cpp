#include <fmt/format.h>

#include <map>

#include "lab/temporary_folder.hpp"
#include "stages/checkpoint/merge.hpp"
#include "stages/engine/gathered_parameters.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/gpt2_file.hpp"
#include "tests/support/saved.hpp"
#include "tests/support/thrown.hpp"

using namespace zerolab;
using namespace zerolab::test;

namespace {

constexpr std::array kStages{0, 1, 2, 3};
constexpr std::array kDtypes{Dtype::fp32, Dtype::bf16, Dtype::fp16};

/// What make_gpt2.py gives the element, in zerolab's layout: [out, in].
float published(const Parameter& parameter, Index element) {
  const std::map<std::string, Index> kinds{{"token_embedding.weight", 1},
                                           {"position_embedding.weight", 2},
                                           {"final_norm.weight", 3},
                                           {"final_norm.bias", 4},
                                           {"norm1.weight", 5},
                                           {"norm1.bias", 6},
                                           {"attention.qkv.weight", 7},
                                           {"attention.qkv.bias", 8},
                                           {"attention.projection.weight", 9},
                                           {"attention.projection.bias", 10},
                                           {"norm2.weight", 11},
                                           {"norm2.bias", 12},
                                           {"mlp.up.weight", 13},
                                           {"mlp.up.bias", 14},
                                           {"mlp.down.weight", 15},
                                           {"mlp.down.bias", 16}};
  std::string name = parameter.name();
  Index block = 0;
  if (name.rfind("blocks.", 0) == 0) {
    block = name[7] - '0';
    name = name.substr(9);
  }
  const Index columns = parameter.shape().size() == 2 ? parameter.shape()[1] : 1;
  const Index row = element / columns;
  const Index column = element % columns;
  const Index kind = kinds.at(name) + 17 * block;
  return static_cast<float>((31 * kind + 7 * row + 3 * column) % 251 - 125) / 64;
}

Training importing(int stage, Dtype dtype, const std::filesystem::path& file) {
  Training training = training_of(tiny_transformer(), stage);
  training.steps = 1;
  training.settings.dtype = dtype;
  training.settings.loss_scale.initial_scale_power = 4;
  training.resume = [file](Runtime& runtime, Engine& engine) {
    load_weights(runtime, engine, file.string());
  };
  return training;
}

/// The elements on all ranks, whole and what the optimizer goes on from, that are not as published.
Index wrong_elements(int ranks, Training training) {
  std::vector<Index> wrong(static_cast<std::size_t>(ranks), 0);
  training.prepare = [&wrong](Runtime& runtime, Engine& engine) {
    Index& mine = wrong[static_cast<std::size_t>(runtime.rank())];
    for (Parameter& parameter : engine.model().parameters()) {
      const GatheredParameters scope(runtime, engine.stage(), {&parameter});
      const std::vector<float> values = read_in_scope(runtime, parameter);
      for (Index i = 0; i < parameter.numel(); ++i) {
        mine += values[static_cast<std::size_t>(i)] == published(parameter, i) ? 0 : 1;
      }
    }
    for (const OwnedSlice& slice : engine.stage().owned()) {
      for (Index i = 0; i < slice.range.size(); ++i) {
        mine += slice.master[i] == published(*slice.parameter, slice.range.begin + i) ? 0 : 1;
      }
    }
  };
  const std::vector<RankReport> reports = run(ranks, training);
  Index all = 0;
  for (const Index each : wrong) all += each;
  return reports[0].steps.size() == 1 ? all : -1;
}

}  // namespace

TEST_CASE("weights under the names of GPT-2 get their places, transposed or not, in every stage") {
  if (!gpt2_files_can_be_made()) return;
  const TemporaryFolder folder;
  int turn = 0;
  for (const std::string& flags :
       {std::string(""), std::string("--prefix --masks"), std::string("--head equal"),
        std::string("--prefix --head equal --dtype F16"), std::string("--dtype BF16 --masks")}) {
    const std::filesystem::path file = folder.path() / fmt::format("{}.safetensors", turn);
    make_gpt2_file(file, flags);
    for (const int stage : kStages) {
      for (const int ranks : {1, 3}) {
        const Dtype dtype = kDtypes[static_cast<std::size_t>(turn++ % 3)];
        INFO("make_gpt2.py " << flags << ", stage " << stage << ", " << ranks << " ranks, "
                             << name_of(dtype));
        CHECK(wrong_elements(ranks, importing(stage, dtype, file)) == 0);
      }
    }
  }
}

TEST_CASE("an import refuses what is not the model's, by the name of the tensor") {
  if (!gpt2_files_can_be_made()) return;
  struct Case {
    std::string flags, names;
  };
  const TemporaryFolder folder;
  const std::filesystem::path file = folder.path() / "m.safetensors";
  for (const auto& [flags, names] :
       {Case{"--head different", "different values for 'wte.weight' and 'lm_head.weight'"},
        Case{"--drop h.1.mlp.c_fc.bias", "has no 'blocks.1.mlp.up.bias'"},
        Case{"--flatten wpe.weight", "'position_embedding.weight' [63], the model has [7, 9]"},
        Case{"--flatten h.0.attn.c_attn.weight", "'h.0.attn.c_attn.weight' [243]"},
        Case{"--dtype F64", "as F64"}, Case{"--layers 3", "has 'blocks.2."},
        Case{"--vocabulary 20", "[20, 9], the model has"}}) {
    make_gpt2_file(file, flags);
    const std::optional<Error> error = thrown_by([&] { run(3, importing(3, Dtype::fp32, file)); });
    INFO("make_gpt2.py " << flags);
    REQUIRE(error.has_value());
    INFO(error->what());
    CHECK(error->code() == Code::checkpoint_mismatch);
    CHECK(contains(error->what_happened(), names));
    CHECK_FALSE(error->way_out().empty());
  }
}

TEST_CASE("imported, a merged file begins a training at step 1 with its weights") {
  int turn = 0;
  for (const NamedTraining& each : small_trainings()) {
    for (const int stage : kStages) {
      const Dtype dtype = kDtypes[static_cast<std::size_t>(turn++ % 3)];
      const TemporaryFolder folder;
      const auto in_type = [&](int in_stage) {
        Training training = each.training(in_stage);
        training.steps = 3;
        training.settings.dtype = dtype;
        training.settings.loss_scale.initial_scale_power = 4;
        return training;
      };
      const States saved = saved_states(4, in_type(stage), folder.path() / "ck");
      const std::filesystem::path file = folder.path() / "m.safetensors";
      merge_checkpoint(Checkpoint::open((folder.path() / "ck").string()), file, {});
      Training second = in_type(3 - stage);
      std::vector<Index> steps;
      second.seed += 1;
      second.on_step = [&steps](Index step, const StepResult&, const Ledger&) {
        steps.push_back(step);
      };
      const States loaded = states_behind(1, second, [&](Runtime& runtime, Engine& engine) {
        load_weights(runtime, engine, file.string());
      });
      INFO(each.name << ", stage " << stage << ", " << name_of(dtype));
      CHECK(steps == std::vector<Index>{1, 2, 3});
      for (const auto& [state, bits] : saved) {
        INFO(state);
        if (state.rfind("moment", 0) != 0) {
          CHECK(loaded.at(state) == bits);
        } else {  // which begins anew
          CHECK(loaded.at(state) == std::vector<std::uint32_t>(bits.size(), 0));
        }
      }
    }
  }
}
