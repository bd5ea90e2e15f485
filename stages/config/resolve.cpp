#include "stages/config/resolve.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "stages/base/nearest.hpp"
#include "stages/base/read_file.hpp"
#include "stages/config/batch_sizes.hpp"
#include "stages/config/collect.hpp"

namespace zerolab {
namespace {

using Json = nlohmann::json;

void complain(Collected& all, Code code, const Chosen& chosen, const std::string& why) {
  all.problems.push_back({code, fmt::format("{}: {} {}", chosen.source, chosen.spelled, why)});
}

bool same_word(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](char x, char y) { return (x | 0x20) == (y | 0x20); });
}

// --- what zerolab has not ------------------------------------------------------------------------

bool accepted(const ForeignKey& key, const Json& value) {
  if (value.is_object() && value.contains("enabled") && value["enabled"] == false) return true;
  const Json list = Json::parse(key.accepted);
  return std::find(list.begin(), list.end(), value) != list.end();
}

std::string_view why_ignored(const ForeignKey& key, int stage) {
  const bool of_stage_3 = key.path.find(".stage3_") != std::string_view::npos;
  return of_stage_3 && stage < 3 ? "only stage 3 reads it" : key.reason;
}

void check_foreign_key(const ForeignKey& key, const Chosen& chosen, int stage, Collected& all) {
  using Effect = ForeignKey::Effect;
  if (key.effect == Effect::must_be && !accepted(key, chosen.value)) {
    complain(all, Code::config_unsupported, chosen,
             fmt::format("is {}: {}; leave it out (what changes nothing is taken: {})",
                         chosen.value.dump(), key.reason,
                         key.accepted.substr(1, key.accepted.size() - 2)));
  }
  if (key.effect == Effect::only_speed) {
    all.warnings.push_back(fmt::format("{}: {} has no effect: {}", chosen.source, chosen.spelled,
                                       why_ignored(key, stage)));
  }
}

SettingRow foreign_row(const ForeignKey& key, const Chosen& chosen, int stage) {
  return {std::string(key.path),
          chosen.value.dump(),
          chosen.origin,
          chosen.source,
          false,
          std::string(why_ignored(key, stage))};
}

// --- what must fit together ----------------------------------------------------------------------

/// Words that a setting may have, and those that only DeepSpeed knows there.
struct Words {
  std::string_view key;
  std::vector<std::string> known, elsewhere;
};

Words optimizer_types() {
  return {"optimizer.type",
          {"Adam", "AdamW", "SGD"},
          {"Adagrad", "Lamb", "Lion", "Muon", "OneBitAdam", "OneBitLamb", "ZeroOneAdam",
           "FusedAdam", "CPUAdam", "Adafactor", "MuAdam", "MuAdamW", "MuSGD"}};
}
Words scheduler_types() {
  return {"scheduler.type",
          {"WarmupLR", "WarmupDecayLR", "WarmupCosineLR"},
          {"LRRangeTest", "OneCycle"}};
}
Words warmup_types() { return {"scheduler.params.warmup_type", {"log", "linear"}, {}}; }

Words tag_validations() { return {"checkpoint.tag_validation", {"Ignore", "Warn", "Fail"}, {}}; }

// True if nobody asked for it, or for a word that zerolab has.
bool check_words(const Words& words, Collected& all) {
  const Chosen* chosen = all.asked_for(words.key);
  if (chosen == nullptr) return true;
  const auto name = chosen->value.get<std::string>();
  const auto is_it = [&name](const std::string& word) { return same_word(name, word); };
  if (std::any_of(words.known.begin(), words.known.end(), is_it)) return true;
  const std::string choice = fmt::format(
      "{} or {}", fmt::join(words.known.begin(), words.known.end() - 1, ", "), words.known.back());
  const auto other = std::find_if(words.elsewhere.begin(), words.elsewhere.end(), is_it);
  if (other != words.elsewhere.end()) {
    complain(all, Code::config_unsupported, *chosen,
             fmt::format("is {}, which zerolab does not have; take {}", *other, choice));
  } else {
    complain(all, Code::config_value, *chosen,
             fmt::format("is {}; it must be {}{}", chosen->value.dump(), choice,
                         did_you_mean(name, words.known)));
  }
  return false;
}

void check_scheduler(const Settings& settings, Collected& all) {
  const ScheduleSettings& schedule = settings.schedule;
  using Type = ScheduleSettings::Type;
  const Chosen* type = all.given("scheduler.type");
  for (const Key& key : keys()) {
    const Chosen* chosen = all.asked_for(key.path);
    if (key.path.find("scheduler.params.") != 0 || chosen == nullptr) continue;
    const std::string_view idle = key.idle(settings);
    if (type == nullptr) {
      complain(all, Code::config_contradiction, *chosen,
               "is given, but no scheduler.type; name one, or leave it out");
    } else if (!idle.empty()) {
      complain(all, Code::config_contradiction, *chosen,
               fmt::format("contradicts scheduler.type {}: {}; leave it out, or change the type",
                           type->value.get<std::string>(), idle));
    }
  }
  if (type == nullptr || schedule.type == Type::constant || schedule.type == Type::warmup) return;
  if (schedule.total_num_steps == 0) {
    complain(all, Code::config_contradiction, *type,
             fmt::format("is {}, which comes down until scheduler.params.total_num_steps; say when",
                         type->value.get<std::string>()));
  } else if (schedule.total_num_steps < schedule.warmup_num_steps) {
    complain(all, Code::config_contradiction, *type,
             fmt::format("would warm up for {} steps (scheduler.params.warmup_num_steps) and be "
                         "done after {} (total_num_steps)",
                         schedule.warmup_num_steps, schedule.total_num_steps));
  }
}

void check_optimizer_parameters(const Settings& settings, Collected& all) {
  const Chosen* type = all.given("optimizer.type");
  const std::string named =
      type == nullptr ? "optimizer.type is AdamW by default"
                      : fmt::format("optimizer.type is {}", type->value.get<std::string>());
  for (const Key& key : keys()) {
    if (key.path.find("optimizer.params.") != 0) continue;
    const Chosen* chosen = all.asked_for(key.path);
    const std::string_view idle = key.idle(settings);
    if (chosen == nullptr || idle.find("only ") != 0) continue;
    complain(all, Code::config_contradiction, *chosen,
             fmt::format("contradicts {}: {}; leave it out, or change the type", named, idle));
  }
  const Chosen* mode = all.asked_for("optimizer.params.adam_w_mode");
  if (type != nullptr && mode != nullptr && mode->value == false &&
      same_word(type->value.get<std::string>(), "AdamW")) {
    complain(all, Code::config_contradiction, *mode,
             "is false, but optimizer.type is AdamW; take the type Adam, or leave it out");
  }
}

void check_precision(const Settings& settings, Collected& all) {
  const Chosen* fp16 = all.asked_for("fp16.enabled");
  const Chosen* bf16 = all.asked_for("bf16.enabled");
  if (fp16 != nullptr && bf16 != nullptr && fp16->value == true && bf16->value == true) {
    complain(all, Code::config_contradiction, *fp16,
             "and bf16.enabled are both true; a model has one working precision");
    return;
  }
  const Chosen* sums = all.given("data_types.grad_accum_dtype");
  if (sums != nullptr && settings.grad_accum_dtype != std::nullopt &&
      settings.grad_accum_dtype != Dtype::fp32 && settings.grad_accum_dtype != settings.dtype) {
    complain(all, Code::config_contradiction, *sums,
             fmt::format("is {}, but gradients are {}, which it does not hold; take fp32, or leave "
                         "it out",
                         sums->value.dump(), name_of(settings.dtype)));
  }
  const Chosen* weights = all.asked_for("data_types.param_dtype");
  if (weights != nullptr && !weights->value.is_null() &&
      weights->value != name_of(settings.dtype)) {
    complain(all, Code::config_contradiction, *weights,
             fmt::format("is {}, but the weights are {} by bf16.enabled and fp16.enabled; leave it "
                         "out, or enable what it says",
                         weights->value.dump(), name_of(settings.dtype)));
  }
}

// What somebody asks for now takes the place of what a checkpoint has for the same thing under
// other keys: the other 16-bit type, the other way to make up a batch.
void forget_what_is_replaced(Collected& all) {
  const auto forget = [&all](std::string_view asked, std::string_view key) {
    const Chosen* now = all.asked_for(asked);
    const auto found = all.chosen.find(key);
    if (now == nullptr || now->value == false || found == all.chosen.end()) return;
    if (found->second.origin == Origin::checkpoint) all.chosen.erase(found);
  };
  forget("bf16.enabled", "fp16.enabled");
  forget("fp16.enabled", "bf16.enabled");
  forget("train_batch_size", "gradient_accumulation_steps");
}

std::optional<GivenSize> given_size(const Collected& all, std::string_view key) {
  const Chosen* chosen = all.asked_for(key);
  if (chosen == nullptr) return std::nullopt;
  return GivenSize{chosen->value.get<Index>(), chosen->source};
}

void resolve_batch_sizes(const ResolveInput& input, Collected& all, Effective& effective) {
  constexpr std::string_view kMicro = "train_micro_batch_size_per_gpu";
  for (const std::string_view key : {std::string_view("train_batch_size"), kMicro,
                                     std::string_view("gradient_accumulation_steps")}) {
    if (all.rejected.count(key) > 0) return;  // already reported; the equation would only confuse
  }
  BatchQuestion question{given_size(all, "train_batch_size"),
                         given_size(all, kMicro),
                         given_size(all, "gradient_accumulation_steps"),
                         std::nullopt,
                         input.world_size,
                         input.world_size_source};
  if (const auto found = all.chosen.find(kMicro); found != all.chosen.end()) {
    question.preset_micro = found->second.value.get<Index>();
  }
  if (const auto found = all.chosen.find("gradient_accumulation_steps");
      found != all.chosen.end() && !question.accumulation) {
    question.accumulation = {found->second.value.get<Index>(), found->second.source};
  }
  const BatchAnswer answer = complete_batch_sizes(question);
  if (!answer.sizes) {
    all.problems.push_back({Code::config_contradiction, answer.problem});
    return;
  }
  effective.train_batch_size = answer.sizes->train;
  effective.settings.micro_batch = answer.sizes->micro;
  effective.settings.gradient_accumulation_steps = answer.sizes->accumulation;
  if (question.train && !question.micro) all.chosen.erase(std::string(kMicro));
}

// --- the rows ------------------------------------------------------------------------------------

SettingRow row(const Key& key, const Effective& effective, const Collected& all) {
  SettingRow row;
  row.key = key.path;
  row.value = key.show(effective);
  const bool derives_accumulation = all.asked_for("train_batch_size") != nullptr &&
                                    all.asked_for("train_micro_batch_size_per_gpu") != nullptr;
  if (const auto found = all.chosen.find(key.path); found != all.chosen.end()) {
    row.origin = found->second.origin;
    row.source = found->second.source;
  } else if (key.path == "zero_optimization.overlap_comm") {
    row.origin = Origin::derived;
    row.reason = "true in stage 3 unless given";
  } else if (key.path == "train_batch_size" || key.path == "train_micro_batch_size_per_gpu" ||
             (key.path == "gradient_accumulation_steps" && derives_accumulation)) {
    row.origin = Origin::derived;
    row.reason = "train = micro x accumulation x ranks";
  }
  if (const std::string_view idle = key.idle(effective.settings); !idle.empty()) {
    row.active = false;
    row.reason = idle;
  }
  return row;
}

// The size of a whole batch is left out: it holds at one N only.
Json given_again(const Collected& all, const Effective& effective) {
  Json given = Json::object();
  for (const Key& key : keys()) {
    const auto found = all.chosen.find(key.path);
    if (found != all.chosen.end()) given[std::string(key.path)] = found->second.value;
  }
  given.erase("train_batch_size");
  given["train_micro_batch_size_per_gpu"] = effective.settings.micro_batch;
  given["gradient_accumulation_steps"] = effective.settings.gradient_accumulation_steps;
  return given;
}

[[noreturn]] void refuse(const std::vector<Problem>& problems) {
  std::string text = problems.front().text;
  if (problems.size() > 1) {
    text = fmt::format("{} mistakes in the configuration", problems.size());
    for (const Problem& problem : problems) {
      text += fmt::format("\n  {}: {}", code_name(problem.code), problem.text);
    }
  }
  throw Error(problems.front().code, text, "docs/configuration.md lists every setting");
}

}  // namespace

std::string_view name_of(Origin origin) {
  switch (origin) {
    case Origin::default_value:
      return "default";
    case Origin::preset:
      return "preset";
    case Origin::checkpoint:
      return "checkpoint";
    case Origin::config:
      return "config";
    case Origin::flag:
      return "flag";
    case Origin::derived:
      return "derived";
  }
  return "?";
}

Json to_json(const SettingRow& row) {
  return {{"key", row.key},       {"value", row.value},   {"origin", name_of(row.origin)},
          {"source", row.source}, {"active", row.active}, {"reason", row.reason}};
}

Effective resolve(const ResolveInput& input) {
  Collected all = collect(input);
  forget_what_is_replaced(all);
  Effective effective;
  const bool known_type = check_words(optimizer_types(), all);
  const bool known_schedule = check_words(scheduler_types(), all);
  check_words(warmup_types(), all);
  check_words(tag_validations(), all);
  for (const Key& key : keys()) {
    if (const auto found = all.chosen.find(key.path); found != all.chosen.end()) {
      key.set(effective, found->second.value);
    }
  }
  ZeroSettings& zero = effective.settings.zero;
  if (all.chosen.count("zero_optimization.overlap_comm") == 0) zero.overlap_comm = zero.stage == 3;
  resolve_batch_sizes(input, all, effective);
  if (known_type) check_optimizer_parameters(effective.settings, all);
  if (known_schedule) check_scheduler(effective.settings, all);
  check_precision(effective.settings, all);
  for (const Key& key : keys()) {
    effective.rows.push_back(row(key, effective, all));
    const SettingRow& now = effective.rows.back();
    const bool placement = key.path.rfind("zero_optimization.", 0) == 0;
    if (placement && !now.active && all.asked_for(key.path) != nullptr) {
      all.warnings.push_back(fmt::format("{} has no effect: {}", key.path, now.reason));
    }
  }
  for (const ForeignKey& key : foreign_keys()) {
    const auto found = all.chosen.find(key.path);
    if (found == all.chosen.end()) continue;
    check_foreign_key(key, found->second, zero.stage, all);
    effective.rows.push_back(foreign_row(key, found->second, zero.stage));
  }
  if (!all.problems.empty()) refuse(all.problems);
  effective.warnings = std::move(all.warnings);
  effective.given = given_again(all, effective);
  return effective;
}

ConfigFile read_config_file(const std::string& path) {
  const std::optional<std::string> text = read_file(path);
  if (!text) {
    throw Error(Code::usage, fmt::format("cannot read the configuration {}", path),
                "check the path after --config");
  }
  return {path, *text};
}

}  // namespace zerolab
