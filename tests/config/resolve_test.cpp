#include "stages/config/resolve.hpp"

#include <fmt/format.h>

#include <set>

#include "stages/base/error.hpp"
#include "stages/config/keys.hpp"
#include "tests/config/support.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/thrown.hpp"

namespace zerolab {
namespace {

// Refused with this code, and a message that has all these parts.
void check_refused(const std::string& text, Code code, const std::vector<std::string>& parts) {
  const auto error = thrown_by([&] { resolve(config(text)); });
  INFO(text);
  REQUIRE(error);
  INFO(error->what());
  CHECK(code_name(error->code()) == code_name(code));
  CHECK(error->exit_status() == 2);
  for (const std::string& part : parts) CHECK(contains(error->what(), part));
}

TEST_CASE("without anything given, DeepSpeed's defaults and the preset hold", "[config]") {
  ResolveInput input = config("{}");
  input.file.reset();
  const Effective effective = resolve(input);
  CHECK(effective.settings.gradient_clipping == 1.0);
  CHECK(effective.settings.zero.stage == 0);
  CHECK(effective.settings.zero.reduce_bucket_size == 500'000'000);
  CHECK(effective.settings.optimizer.adam_w_mode);
  CHECK(effective.rows.size() == keys().size());
  CHECK(effective.warnings.empty());
}

TEST_CASE("a flag beats the file, the file the preset, the preset the default", "[config]") {
  const std::string_view bucket = "zero_optimization.reduce_bucket_size";
  ResolveInput input = config("{}");
  CHECK(row_of(resolve(input), bucket).value == "500000000");
  CHECK(row_of(resolve(input), bucket).origin == Origin::default_value);
  input.preset.push_back({std::string(bucket), 100, "preset gpt-nano"});
  CHECK(row_of(resolve(input), bucket).value == "100");
  CHECK(row_of(resolve(input), bucket).origin == Origin::preset);
  input.file->text = R"({"zero_optimization": {"reduce_bucket_size": 200}})";
  CHECK(row_of(resolve(input), bucket).value == "200");
  CHECK(row_of(resolve(input), bucket).origin == Origin::config);
  input.flags.push_back({std::string(bucket), 300, "--reduce-bucket-size"});
  CHECK(row_of(resolve(input), bucket).value == "300");
  CHECK(row_of(resolve(input), bucket).origin == Origin::flag);
  CHECK(resolve(input).settings.zero.reduce_bucket_size == 300);
}

TEST_CASE("every setting reaches the plain values", "[config]") {
  const Settings s = resolve(config(R"({
    "train_batch_size": 48, "gradient_accumulation_steps": 3, "gradient_clipping": 0.5,
    "optimizer": {"type": "Adam", "params": {"lr": 0.25, "betas": [0.5, 0.75], "eps": 0.125,
                                             "weight_decay": 0.0625, "adam_w_mode": false}},
    "zero_optimization": {"stage": 2, "overlap_comm": true, "reduce_bucket_size": 7}})"))
                         .settings;
  CHECK(s.micro_batch == 4);
  CHECK(s.gradient_accumulation_steps == 3);
  CHECK(s.gradient_clipping == 0.5);
  CHECK(s.optimizer.type == OptimizerSettings::Type::adam);
  CHECK(s.optimizer.learning_rate == 0.25F);
  CHECK(s.optimizer.beta1 == 0.5F);
  CHECK(s.optimizer.beta2 == 0.75F);
  CHECK(s.optimizer.epsilon == 0.125F);
  CHECK(s.optimizer.weight_decay == 0.0625F);
  CHECK_FALSE(s.optimizer.adam_w_mode);
  CHECK(s.zero.stage == 2);
  CHECK(s.zero.overlap_comm);
  CHECK(s.zero.reduce_bucket_size == 7);

  const Settings sgd =
      resolve(config(R"({"optimizer": {"type": "sgd", "params": {"momentum": 0.5}}})")).settings;
  CHECK(sgd.optimizer.type == OptimizerSettings::Type::sgd);
  CHECK(sgd.optimizer.momentum == 0.5F);
}

TEST_CASE("overlap_comm is true in stage 3 unless given, as in DeepSpeed", "[config]") {
  for (int stage = 0; stage <= 3; ++stage) {
    const std::string head = fmt::format(R"({{"zero_optimization": {{"stage": {})", stage);
    CHECK(resolve(config(head + "}}")).settings.zero.overlap_comm == (stage == 3));
    for (const bool given : {false, true}) {
      const std::string text = fmt::format(R"({}, "overlap_comm": {}}}}})", head, given);
      CHECK(resolve(config(text)).settings.zero.overlap_comm == given);
    }
  }
}

TEST_CASE("B76: a misspelt key is an error with the nearest name, at every level", "[config]") {
  check_refused(R"({"zero_optimization": {"stage": 2, "reduce_bukcet_size": 1000}})",
                Code::config_unknown_key,
                {"ds.json: zero_optimization.reduce_bukcet_size is not a setting",
                 "did you mean zero_optimization.reduce_bucket_size?"});
  check_refused(R"({"gradient_cliping": 1})", Code::config_unknown_key,
                {"did you mean gradient_clipping?"});
  check_refused(R"({"zero_optimization": {"offload_optimizer": {"devise": "none"}}})",
                Code::config_unknown_key,
                {"did you mean zero_optimization.offload_optimizer.device?"});
  check_refused(R"({"zero_optimisation": {"stage": 2}})", Code::config_unknown_key,
                {"did you mean zero_optimization?"});
  check_refused(R"({"optimizer": {"params": {"max_grad_norm": 1}}})", Code::config_unknown_key,
                {"it is called gradient_clipping"});
}

TEST_CASE("B77: a known block in the wrong place is told where it belongs", "[config]") {
  check_refused(R"({"zero_optimization": {"aio": {"block_size": 1}}})", Code::config_unknown_key,
                {"zero_optimization.aio", "aio belongs at the top level"});
  check_refused(R"({"stage": 2})", Code::config_unknown_key,
                {"stage belongs in zero_optimization"});
  check_refused(R"({"optimizer": {"lr": 0.1}})", Code::config_unknown_key,
                {"lr belongs in optimizer.params"});
}

TEST_CASE("B80: whole numbers may be written as 5e8, nothing is truncated or taken from a string",
          "[config]") {
  const auto text = [](std::string_view value) {
    return fmt::format(R"({{"zero_optimization": {{"reduce_bucket_size": {}}}}})", value);
  };
  for (const std::string_view value : {"5e8", "500000000", "5E+8", "500000000.0"}) {
    CHECK(resolve(config(text(value))).settings.zero.reduce_bucket_size == 500'000'000);
  }
  for (const auto& [value, why] : std::vector<std::pair<std::string, std::string>>{
           {R"("5e8")", R"(is "5e8" (a string); it must be a number, written without quotes)"},
           {"5.5", "is 5.5; it must be a whole number"},
           {"3774873.6", "is 3774873.6; it must be a whole number"},
           {"-1", "is -1; it must be from 1 to"},
           {"0", "is 0; it must be from 1 to"},
           {"1e30", "is 1e+30; it must be from 1 to"},
           {"true", "is true (true or false); it must be a whole number"},
           {"null", "is null (null); it must be a whole number"},
           {"[5]", "is [5] (a list); it must be a whole number"}}) {
    check_refused(text(value), Code::config_value,
                  {"ds.json: zero_optimization.reduce_bucket_size " + why});
  }
}

TEST_CASE("other values of the wrong kind are refused with key and type", "[config]") {
  for (const auto& [text, why] : std::vector<std::pair<std::string, std::string>>{
           {R"({"zero_optimization": {"stage": 4}})", "zero_optimization.stage is 4"},
           {R"({"zero_optimization": {"stage": "2"}})", R"(is "2" (a string))"},
           {R"({"zero_optimization": {"overlap_comm": 1}})", "it must be true or false"},
           {R"({"zero_optimization": 2})", "it must be an object"},
           {R"({"optimizer": {"type": 3}})", "it must be a string"},
           {R"({"optimizer": {"type": "AdmaW"}})", "did you mean AdamW?"},
           {R"({"optimizer": {"params": {"betas": [0.9]}}})", "a list of two numbers"},
           {R"({"optimizer": {"params": {"betas": [0.9, 0.999999999]}}})", "below 1"},
           {R"({"optimizer": {"params": {"lr": -1}}})", "optimizer.params.lr is -1"},
           {R"({"optimizer": {"params": {"lr": 1e39}}})", "optimizer.params.lr is 1e+39"},
           {R"({"zero_optimization": {"contiguous_gradients": "yes"}})", "true or false"},
           {R"([1])", "the whole file is a list"}}) {
    check_refused(text, Code::config_value, {why});
  }
}

TEST_CASE("B81: \"auto\" is refused, because nothing resolves it here", "[config]") {
  for (const std::string_view value : {"auto", "Auto", " auto "}) {
    check_refused(fmt::format(R"({{"zero_optimization": {{"reduce_bucket_size": "{}"}}}})", value),
                  Code::config_value,
                  {"zero_optimization.reduce_bucket_size is \"auto\"", "nothing resolves that"});
  }
  check_refused(R"({"scheduler": "auto"})", Code::config_value, {"scheduler is \"auto\""});
}

TEST_CASE("B82: what each stage makes of offload and stage 3 settings is decided", "[config]") {
  for (int stage = 0; stage <= 3; ++stage) {
    for (const std::string_view block : {"offload_optimizer", "offload_param"}) {
      const auto text = [&](std::string_view device) {
        return fmt::format(
            R"({{"zero_optimization": {{"stage": {}, "{}": {{"device": "{}", "pin_memory": true}}}}}})",
            stage, block, device);
      };
      CHECK(resolve(config(text("none"))).warnings.empty());
      for (const std::string_view device : {"cpu", "nvme"}) {
        check_refused(text(device), Code::config_unsupported,
                      {fmt::format("zero_optimization.{}.device is \"{}\"", block, device)});
      }
    }
    const Effective effective = resolve(config(fmt::format(
        R"({{"zero_optimization": {{"stage": {}, "stage3_prefetch_bucket_size": 5e7}}}})", stage)));
    CHECK(row_of(effective, "zero_optimization.stage3_prefetch_bucket_size").active ==
          (stage == 3));
    CHECK(effective.warnings ==
          (stage == 3 ? std::vector<std::string>{}
                      : std::vector<std::string>{"zero_optimization.stage3_prefetch_bucket_size "
                                                 "has no effect: only stage 3 reads it"}));
  }
}

TEST_CASE("B83: a deprecated key is mapped with its new name, and both together are an error",
          "[config]") {
  const auto zero = [](std::string_view inside) {
    return fmt::format(R"({{"zero_optimization": {{{}}}}})", inside);
  };
  const Effective off = resolve(config(zero(R"("cpu_offload": false)")));
  CHECK(row_of(off, "zero_optimization.offload_optimizer.device").value == R"("none")");
  REQUIRE(off.warnings.size() == 1);
  CHECK(contains(off.warnings[0], "zero_optimization.offload_optimizer.device"));

  check_refused(zero(R"("cpu_offload": true)"), Code::config_unsupported,
                {"zero_optimization.cpu_offload (deprecated, now "
                 "zero_optimization.offload_optimizer.device)"});
  check_refused(zero(R"("cpu_offload": true, "offload_optimizer": {"device": "none"})"),
                Code::config_contradiction, {"cpu_offload", "are two names of one setting"});
  check_refused(zero(R"("cpu_offload_param": true)"), Code::config_unsupported, {"offload_param"});

  const Effective save =
      resolve(config(zero(R"("stage3_gather_fp16_weights_on_model_save": true)")));
  CHECK(contains(save.warnings.at(0), "stage3_gather_16bit_weights_on_model_save"));

  CHECK(resolve(config(R"({"zero_optimization": true})")).settings.zero.stage == 1);
  CHECK(resolve(config(R"({"zero_optimization": false})")).settings.zero.stage == 0);
}

TEST_CASE("B84: keys of one precision block are not accepted in the other, all in one report",
          "[config]") {
  check_refused(R"({"bf16": {"enabled": false, "loss_scale": 0, "initial_scale_power": 10}})",
                Code::config_unknown_key,
                {"bf16.loss_scale is not a setting; loss_scale belongs in fp16",
                 "bf16.initial_scale_power is not a setting; initial_scale_power belongs in fp16"});
  check_refused(R"({"fp16": {"enabled": true}, "bf16": {"enabled": true}})",
                Code::config_contradiction, {"fp16.enabled and bf16.enabled are both true"});
  CHECK(resolve(config(R"({"fp16": {"enabled": false, "loss_scale": 128}})")).warnings.empty());
}

TEST_CASE("B46: an optimizer that looks at whole weights is refused in every stage, by name",
          "[config]") {
  for (const int stage : {0, 1, 2, 3}) {
    for (const char* type : {"Lamb", "Adafactor", "Muon"}) {
      check_refused(fmt::format(R"({{"optimizer": {{"type": "{}"}},
                                     "zero_optimization": {{"stage": {}}}}})",
                                type, stage),
                    Code::config_unsupported, {"optimizer.type", type, "Adam, AdamW or SGD"});
    }
  }
}

TEST_CASE("a scheduler has its own parameters, and those that come down say until when",
          "[config]") {
  const ScheduleSettings schedule =
      resolve(config(R"({"scheduler": {"type": "WarmupCosineLR", "params": {
                          "total_num_steps": 3000, "warmup_num_steps": 5e2,
                          "warmup_min_ratio": 0.1, "cos_min_ratio": 0.01}}})"))
          .settings.schedule;
  CHECK(schedule.type == ScheduleSettings::Type::warmup_cosine);
  CHECK(schedule.warmup_type == ScheduleSettings::WarmupType::log);
  CHECK(schedule.total_num_steps == 3000);
  CHECK(schedule.warmup_num_steps == 500);
  CHECK(schedule.warmup_min_ratio == 0.1F);
  CHECK(schedule.cos_min_ratio == 0.01F);
  CHECK(resolve(config("{}")).settings.schedule.type == ScheduleSettings::Type::constant);

  check_refused(R"({"scheduler": {"type": "WarmupDecayLR"}})", Code::config_contradiction,
                {"scheduler.type", "total_num_steps"});
  check_refused(R"({"scheduler": {"type": "WarmupDecayLR", "params": {"total_num_steps": 9}}})",
                Code::config_contradiction, {"1000 steps", "after 9"});
  check_refused(R"({"scheduler": {"type": "WarmupLR", "params": {"cos_min_ratio": 0.1}}})",
                Code::config_contradiction, {"cos_min_ratio", "only WarmupCosineLR"});
  check_refused(R"({"scheduler": {"type": "WarmupLR", "params": {"total_num_steps": 10}}})",
                Code::config_contradiction, {"total_num_steps", "WarmupLR stays"});
  check_refused(R"({"scheduler": {"params": {"warmup_num_steps": 10}}})",
                Code::config_contradiction, {"warmup_num_steps", "no scheduler.type"});
  check_refused(R"({"scheduler": {"type": "WarmupRL"}})", Code::config_value,
                {"WarmupRL", "did you mean WarmupLR"});
  check_refused(R"({"scheduler": {"type": "WarmupLR", "params": {"warmup_type": "cubic"}}})",
                Code::config_value, {"warmup_type", "log or linear"});
  check_refused(R"({"scheduler": {"type": "WarmupLR", "params": {"warmup_num_steps": 0}}})",
                Code::config_value, {"warmup_num_steps", "from 1"});
}

TEST_CASE("what would change placement or numbers is refused, its harmless value is taken",
          "[config]") {
  for (const auto& [bad, good] : std::vector<std::pair<std::string, std::string>>{
           {R"("fp16": {"fp16_master_weights_and_grads": true})",
            R"("fp16": {"fp16_master_weights_and_grads": false, "auto_cast": true})"},
           {R"("bf16": {"bf16_optimizer_states": true})",
            R"("bfloat16": {"enabled": true, "bf16_optimizer_states": false})"},
           {R"("gradient_allreduce_op": "sum")", R"("gradient_allreduce_op": "mean")"},
           {R"("scheduler": {"type": "OneCycle"})", R"("scheduler": null)"},
           {R"("amp": {"enabled": true})", R"("amp": {"enabled": false, "opt_level": "O1"})"},
           {R"("zero_optimization": {"stage3_use_all_reduce_for_fetch_params": true})",
            R"("zero_optimization": {"stage3_use_all_reduce_for_fetch_params": false})"},
           {R"("zero_optimization": {"zero_hpz_partition_size": 2})",
            R"("zero_optimization": {"zero_hpz_partition_size": 1})"},
           {R"("zero_optimization": {"zero_quantized_weights": true})",
            R"("zero_optimization": {"zero_quantized_weights": false})"},
           {R"("zero_optimization": {"mics_shard_size": 2})",
            R"("zero_optimization": {"mics_shard_size": -1})"},
           {R"("optimizer": {"type": "Lamb"})", R"("optimizer": {"type": "adamw"})"}}) {
    check_refused("{" + bad + "}", Code::config_unsupported, {"ds.json: "});
    CHECK(resolve(config("{" + good + "}")).warnings.empty());
  }
}

TEST_CASE("what only affects speed is taken with a warning that gives the reason", "[config]") {
  for (const std::string_view key :
       {"use_multi_rank_bucket_allreduce", "allgather_bucket_size", "round_robin_gradients"}) {
    const Effective effective =
        resolve(config(fmt::format(R"({{"zero_optimization": {{"{}": {}}}}})", key,
                                   key == "allgather_bucket_size" ? "5e8" : "true")));
    REQUIRE(effective.warnings.size() == 1);
    CHECK(contains(effective.warnings[0], key));
    const SettingRow row = row_of(effective, fmt::format("zero_optimization.{}", key));
    CHECK_FALSE(row.active);
    CHECK(row.reason != "");
  }
  CHECK(resolve(config(R"({"steps_per_print": 10})")).warnings.empty());
}

TEST_CASE("settings of the other optimizer contradict the type, their defaults are just idle",
          "[config]") {
  check_refused(R"({"optimizer": {"type": "AdamW", "params": {"momentum": 0.9}}})",
                Code::config_contradiction,
                {"optimizer.params.momentum contradicts optimizer.type is AdamW"});
  check_refused(R"({"optimizer": {"type": "SGD", "params": {"betas": [0.9, 0.99]}}})",
                Code::config_contradiction, {"optimizer.params.betas", "optimizer.type is SGD"});
  check_refused(R"({"optimizer": {"type": "AdamW", "params": {"adam_w_mode": false}}})",
                Code::config_contradiction, {"adam_w_mode", "optimizer.type is AdamW"});
  const Effective sgd = resolve(config(R"({"optimizer": {"type": "SGD"}})"));
  CHECK_FALSE(row_of(sgd, "optimizer.params.betas").active);
  CHECK(row_of(sgd, "optimizer.params.momentum").active);
}

TEST_CASE("all mistakes are reported at once, each with its code and source", "[config]") {
  ResolveInput input = config(R"({
    "zero_optimization": {"stage": 7, "reduce_bukcet_size": 1, "overlap_comm": true,
                          "overlap_comm": false},
    "amp": {"enabled": true}})");
  input.flags = {{"optimizer.params.lr", "fast", "--learning-rate"}};
  const auto error = thrown_by([&] { resolve(input); });
  REQUIRE(error);
  INFO(error->what());
  CHECK(error->code() == Code::config_contradiction);  // that of the first
  CHECK(contains(error->what(), "5 mistakes in the configuration"));
  for (const std::string_view line :
       {"ZL205: ds.json: zero_optimization.overlap_comm is given more than once",
        "ZL202: ds.json: zero_optimization.stage is 7",
        "ZL204: ds.json: zero_optimization.reduce_bukcet_size is not a setting",
        "ZL202: --learning-rate: optimizer.params.lr is \"fast\" (a string)",
        "ZL206: ds.json: amp is {"}) {
    CHECK(contains(error->what(), line));
  }
}

TEST_CASE("a file that is no JSON is refused with line and column", "[config]") {
  check_refused("{\n  \"train_batch_size\": 8,\n}", Code::config_syntax, {"ds.json:3:1"});
  check_refused("", Code::config_syntax, {"ds.json:1:1"});
}

TEST_CASE("a file that cannot be read is a usage error that names it", "[config]") {
  for (const char* path : {"/nowhere/ds.json", "/tmp"}) {
    const auto error = thrown_by([&] { read_config_file(path); });
    REQUIRE(error);
    CHECK(error->code() == Code::usage);
    CHECK(contains(error->what(), path));
  }
}

TEST_CASE("no key is in the tables twice, and every second spelling leads to one", "[config]") {
  std::set<std::string_view> paths;
  for (const Key& key : keys()) CHECK(paths.insert(key.path).second);
  for (const ForeignKey& key : foreign_keys()) {
    CHECK(paths.insert(key.path).second);
    CHECK(key.reason != "");
    CHECK((key.effect == ForeignKey::Effect::must_be) == !key.accepted.empty());
  }
  for (const Spelling& spelling : spellings()) {
    CHECK(paths.count(spelling.path) == 1);
    CHECK(paths.count(spelling.old_path) == 0);
  }
}

}  // namespace
}  // namespace zerolab
