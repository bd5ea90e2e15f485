// Settings that a checkpoint brings (ResolveInput::checkpoint).

#include <algorithm>

#include "lab/run.hpp"
#include "stages/config/keys.hpp"
#include "tests/config/support.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/thrown.hpp"

namespace zerolab {
namespace {

/// What a checkpoint of this training brings.
std::vector<Given> brought_by(const Effective& saved) {
  std::vector<Given> brought;
  for (const auto& [key, value] : saved.given.items()) brought.push_back({key, value, "ck"});
  return brought;
}

/// Resumed with this file, at so many ranks.
ResolveInput resumed(const std::string& saved, const std::string& file, int ranks = 4) {
  ResolveInput input = config(file, ranks);
  input.checkpoint = brought_by(resolve(config(saved)));
  return input;
}

/// Every setting with its value; the size of the whole batch depends on the ranks.
std::vector<std::string> values_of(const Effective& effective) {
  std::vector<std::string> values;
  for (const Key& key : keys()) {
    if (key.path == "train_batch_size") continue;
    values.push_back(std::string(key.path) + " = " + row_of(effective, key.path).value);
  }
  return values;
}

constexpr const char* kEverything = R"({
  "train_batch_size": 48, "gradient_accumulation_steps": 3, "gradient_clipping": 0.5,
  "fp16": {"enabled": true, "initial_scale_power": 9, "hysteresis": 3},
  "data_types": {"grad_accum_dtype": "fp32"}, "communication_data_type": "fp32",
  "optimizer": {"type": "Adam", "params": {"lr": 0.25, "betas": [0.5, 0.75], "eps": 0.125,
                                           "weight_decay": 0.0625, "adam_w_mode": false}},
  "scheduler": {"type": "WarmupDecayLR", "params": {"total_num_steps": 90,
                                                    "warmup_num_steps": 7}},
  "activation_checkpointing": {"enabled": true}, "checkpoint": {"tag_validation": "fail"},
  "zero_optimization": {"stage": 3, "overlap_comm": false, "reduce_bucket_size": 77,
                        "leaf_module": {"names": ["blocks.0"]},
                        "stage3_max_live_parameters": 99,
                        "stage3_gather_16bit_weights_on_model_save": true}})";
constexpr const char* kSgd =
    R"({"bf16": {"enabled": true, "check_grad_overflow": false}, "train_micro_batch_size_per_gpu": 5,
        "optimizer": {"type": "SGD", "params": {"lr": 0.5, "momentum": 0.9}},
        "zero_optimization": {"stage": 1, "reduce_every_micro_step": true}})";

TEST_CASE("what a checkpoint has given is the settings again, all of them, at any number of ranks",
          "[config]") {
  for (const char* text : {"{}", kEverything, kSgd, R"({"zero_optimization": {"stage": 2}})"}) {
    const Effective saved = resolve(config(text));
    for (const int ranks : {1, 3, 4, 7}) {
      INFO(text << ", " << ranks << " ranks");
      ResolveInput input;
      input.checkpoint = brought_by(saved);
      input.world_size = ranks;
      const Effective again = resolve(input);
      CHECK(values_of(again) == values_of(saved));
      CHECK(again.train_batch_size == saved.train_batch_size / 4 * ranks);
      CHECK(again.given == saved.given);
    }
  }
}

TEST_CASE("a flag beats the file, the file the checkpoint, the checkpoint the preset", "[config]") {
  const std::string_view bucket = "zero_optimization.reduce_bucket_size";
  ResolveInput input = resumed(R"({"zero_optimization": {"reduce_bucket_size": 200}})", "{}");
  input.preset.push_back({std::string(bucket), 100, "preset gpt-nano"});
  CHECK(row_of(resolve(input), bucket).value == "200");
  CHECK(row_of(resolve(input), bucket).origin == Origin::checkpoint);
  CHECK(row_of(resolve(input), bucket).source == "ck");
  input.file->text = R"({"zero_optimization": {"reduce_bucket_size": 300}})";
  CHECK(row_of(resolve(input), bucket).value == "300");
  CHECK(row_of(resolve(input), bucket).origin == Origin::config);
  input.flags.push_back({std::string(bucket), 400, "--reduce-bucket-size"});
  CHECK(row_of(resolve(input), bucket).value == "400");
  CHECK(row_of(resolve(input), bucket).origin == Origin::flag);
}

TEST_CASE("what a checkpoint brings gives no warning, in any stage it is resumed in", "[config]") {
  for (const int stage : {0, 1, 2, 3}) {
    INFO("stage " << stage);
    ResolveInput input = resumed(kEverything, "{}");
    input.flags = {{"zero_optimization.stage", stage, "--stage"}};
    CHECK(resolve(input).warnings.empty());
    CHECK_FALSE(resolve(input).settings.zero.overlap_comm);
    input.flags.push_back({"zero_optimization.stage3_max_live_parameters", 99, "--max-live"});
    CHECK(resolve(input).warnings.size() == (stage == 3 ? 0 : 1));
  }
  ResolveInput input = resumed(R"({"zero_optimization": {"stage": 3}})", "{}");
  input.flags = {{"zero_optimization.stage", 2, "--stage"}};
  CHECK_FALSE(resolve(input).settings.zero.overlap_comm);  // nobody had given it
}

TEST_CASE("the other 16-bit type replaces that of a checkpoint, and turning one off only itself",
          "[config]") {
  const auto dtype = [](const std::string& saved, const std::string& file) {
    return resolve(resumed(saved, file)).settings.dtype;
  };
  const std::string bf16 = R"({"bf16": {"enabled": true}})";
  const std::string fp16 = R"({"fp16": {"enabled": true}})";
  CHECK(dtype(bf16, "{}") == Dtype::bf16);
  CHECK(dtype(bf16, fp16) == Dtype::fp16);
  CHECK(dtype(fp16, bf16) == Dtype::bf16);
  CHECK(dtype(fp16, R"({"fp16": {"enabled": false}})") == Dtype::fp32);
  CHECK(dtype(fp16, R"({"bf16": {"enabled": false}})") == Dtype::fp16);
  CHECK(dtype(bf16, R"({"fp16": {"enabled": false}})") == Dtype::bf16);
}

TEST_CASE("the sizes of a batch that are asked for replace those of a checkpoint", "[config]") {
  struct Sizes {
    Index train, micro, accumulation;
    bool operator==(const Sizes&) const = default;
  };
  const auto sizes = [](const std::string& file, int ranks) {
    const std::string saved =
        R"({"train_micro_batch_size_per_gpu": 6, "gradient_accumulation_steps": 2})";
    const Effective effective = resolve(resumed(saved, file, ranks));
    return Sizes{effective.train_batch_size, effective.settings.micro_batch,
                 effective.settings.gradient_accumulation_steps};
  };
  CHECK(sizes("{}", 4) == Sizes{48, 6, 2});
  CHECK(sizes("{}", 3) == Sizes{36, 6, 2});
  CHECK(sizes(R"({"gradient_accumulation_steps": 4})", 2) == Sizes{48, 6, 4});
  CHECK(sizes(R"({"train_micro_batch_size_per_gpu": 8})", 3) == Sizes{48, 8, 2});
  CHECK(sizes(R"({"train_batch_size": 48})", 3) == Sizes{48, 16, 1});
  CHECK(sizes(R"({"train_batch_size": 48, "train_micro_batch_size_per_gpu": 4})", 3) ==
        Sizes{48, 4, 4});
  CHECK(sizes(R"({"train_batch_size": 48, "gradient_accumulation_steps": 8})", 3) ==
        Sizes{48, 2, 8});
}

TEST_CASE("one parameter of a checkpoint's optimizer or scheduler is replaced alone", "[config]") {
  const Settings more_time =
      resolve(resumed(kEverything, R"({"scheduler": {"params": {"total_num_steps": 120}}})"))
          .settings;
  CHECK(more_time.schedule.total_num_steps == 120);
  CHECK(more_time.schedule.warmup_num_steps == 7);
  CHECK(more_time.schedule.type == ScheduleSettings::Type::warmup_decay);
  const Settings other_schedule =
      resolve(resumed(kEverything, R"({"scheduler": {"type": "WarmupLR"}})")).settings;
  CHECK(other_schedule.schedule.type == ScheduleSettings::Type::warmup);
  const Settings heavier =
      resolve(resumed(kSgd, R"({"optimizer": {"params": {"momentum": 0.5}}})")).settings;
  CHECK(heavier.optimizer.momentum == 0.5F);
  CHECK(heavier.optimizer.learning_rate == 0.5F);
}

TEST_CASE("what is asked for and a checkpoint's settings that contradict each other are refused",
          "[config]") {
  const auto refused = [](const std::string& saved, const std::string& file) {
    const auto error = thrown_by([&] { resolve(resumed(saved, file)); });
    return error ? code_name(error->code()) + " " + error->what_happened() : "taken";
  };
  CHECK(contains(refused(kEverything, R"({"scheduler": {"params": {"warmup_num_steps": 91}}})"),
                 "ZL205 ck: scheduler.type would warm up for 91 steps"));
  CHECK(contains(refused(kSgd, R"({"optimizer": {"params": {"eps": 1e-3}}})"),
                 "contradicts optimizer.type is SGD"));
  CHECK(
      contains(refused(R"({"bf16": {"enabled": true}, "data_types": {"grad_accum_dtype":"bf16"}})",
                       R"({"fp16": {"enabled": true}})"),
               "ZL205 ck: data_types.grad_accum_dtype is \"bf16\""));
}

TEST_CASE("a setting in a checkpoint that there is not is refused by name", "[config]") {
  ResolveInput input = config("{}");
  input.checkpoint = {{"zero_optimization.stagge", 3, "ck"}};
  const auto error = thrown_by([&] { resolve(input); });
  REQUIRE(error);
  CHECK(error->code() == Code::config_unknown_key);
  CHECK(contains(error->what(), "ck: zero_optimization.stagge is not a setting; did you mean"));
}

}  // namespace
}  // namespace zerolab
