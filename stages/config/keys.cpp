#include "stages/config/keys.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <limits>

#include "stages/base/json_text.hpp"

namespace zerolab {
namespace {

using Json = nlohmann::json;
using Type = OptimizerSettings::Type;
using Schedule = ScheduleSettings::Type;

constexpr double kFloatMost = std::numeric_limits<float>::max();
constexpr double kSequences = 1e6;     // keeps the product of the batch sizes countable
constexpr double kElements = 1e18;     // as good as unlimited
constexpr double kCountable = 0x1p63;  // Python's sys.maxsize, which DeepSpeed has as a default

std::string_view always_active(const Settings&) { return {}; }
std::string_view only_adam(const Settings& settings) {
  return settings.optimizer.type == Type::adam ? "" : "only Adam and AdamW have it";
}
std::string_view only_sgd(const Settings& settings) {
  return settings.optimizer.type == Type::sgd ? "" : "only SGD has it";
}
std::string_view only_when_decaying(const Settings& settings) {
  return settings.optimizer.weight_decay != 0 ? "" : "0 is off";
}
std::string_view only_when_clipping(const Settings& settings) {
  return settings.gradient_clipping != 0 ? "" : "0 is off";
}

std::string_view needs_scheduler(const Settings& settings, bool has) {
  if (settings.schedule.type == Schedule::constant) return "there is no scheduler";
  if (has) return "";
  return settings.schedule.type == Schedule::warmup_cosine ? "WarmupCosineLR has no such thing"
                                                           : "only WarmupCosineLR has it";
}
std::string_view any_scheduler(const Settings& settings) { return needs_scheduler(settings, true); }
std::string_view only_cosine(const Settings& settings) {
  return needs_scheduler(settings, settings.schedule.type == Schedule::warmup_cosine);
}
std::string_view not_cosine(const Settings& settings) {
  return needs_scheduler(settings, settings.schedule.type != Schedule::warmup_cosine);
}
std::string_view only_falling(const Settings& settings) {
  if (settings.schedule.type == Schedule::warmup) return "WarmupLR stays where it has come to";
  return needs_scheduler(settings, true);
}

std::string_view only_bf16(const Settings& settings) {
  return settings.dtype == Dtype::bf16 ? "" : "bf16 is not enabled";
}
std::string_view only_fp16(const Settings& settings) {
  return settings.dtype == Dtype::fp16 ? "" : "fp16 is not enabled";
}
std::string_view only_dynamic_scale(const Settings& settings) {
  if (settings.dtype != Dtype::fp16) return "fp16 is not enabled";
  return settings.loss_scale.loss_scale == 0 ? "" : "fp16.loss_scale is fixed";
}
std::string_view only_without_prescale(const Settings& settings) {
  return settings.prescale_gradients ? "prescale_gradients divides by the number of ranks" : "";
}

std::string_view only_stage_3(const Settings& settings) {
  return settings.zero.stage == 3 ? "" : "only stage 3 reads it";
}
std::string_view only_when_prefetching(const Settings& settings) {
  if (settings.zero.stage != 3) return "only stage 3 reads it";
  return settings.zero.prefetch_bucket_size > 0
             ? ""
             : "it limits prefetching only, and stage3_prefetch_bucket_size is 0";
}
std::string_view not_in_stage_0(const Settings& settings) {
  return settings.zero.stage > 0 ? "" : "stage 0 all-reduces: every rank needs every gradient";
}
std::string_view only_stages_0_and_1(const Settings& settings) {
  return settings.zero.stage < 2 ? "" : "stages 2 and 3 always do";
}
std::string_view only_stages_2_and_3(const Settings& settings) {
  return settings.zero.stage >= 2 || settings.zero.reduce_every_micro_step
             ? ""
             : "in stages 0 and 1 all gradients lie end to end in one buffer anyway";
}

// "fp32", "bf16", "fp16"; nothing for null.
std::optional<Dtype> dtype_in(const Json& value) {
  for (const Dtype dtype : {Dtype::fp32, Dtype::bf16, Dtype::fp16}) {
    if (value == name_of(dtype)) return dtype;
  }
  return std::nullopt;
}

// One of the two switches turns it on; the other one, off, does not turn it off again.
void enable(Settings& settings, Dtype dtype, const Json& on) {
  if (on.get<bool>()) {
    settings.dtype = dtype;
  } else if (settings.dtype == dtype) {
    settings.dtype = Dtype::fp32;
  }
}

std::string list_text(const std::vector<std::string>& names) {
  return names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", "));
}

std::string limit_text(Index limit) {
  return limit == std::numeric_limits<Index>::max() ? "unlimited" : fmt::to_string(limit);
}

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

Schedule schedule_named(const std::string& name) {
  if (name == "warmuplr") return Schedule::warmup;
  if (name == "warmupdecaylr") return Schedule::warmup_decay;
  return name == "warmupcosinelr" ? Schedule::warmup_cosine : Schedule::constant;
}

std::string schedule_name(Schedule type) {
  switch (type) {
    case Schedule::warmup:
      return "WarmupLR";
    case Schedule::warmup_decay:
      return "WarmupDecayLR";
    case Schedule::warmup_cosine:
      return "WarmupCosineLR";
    case Schedule::constant:
      break;
  }
  return "none";
}

TagValidation tag_validation_named(const std::string& name) {
  if (name == "ignore") return TagValidation::ignore;
  return name == "fail" ? TagValidation::fail : TagValidation::warn;
}

std::string tag_validation_name(TagValidation validation) {
  switch (validation) {
    case TagValidation::ignore:
      return "Ignore";
    case TagValidation::fail:
      return "Fail";
    case TagValidation::warn:
      break;
  }
  return "Warn";
}

std::string optimizer_name(const OptimizerSettings& optimizer) {
  if (optimizer.type == Type::sgd) return "SGD";
  return optimizer.adam_w_mode ? "AdamW" : "Adam";
}

const std::array kKeys{
    Key{"train_batch_size", Kind::whole, 1, kSequences* kSequences,
        [](Effective& e, const Json& v) { e.train_batch_size = v.get<Index>(); },
        [](const Effective& e) { return fmt::to_string(e.train_batch_size); }, always_active},
    Key{"train_micro_batch_size_per_gpu", Kind::whole, 1, kSequences,
        [](Effective& e, const Json& v) { e.settings.micro_batch = v.get<Index>(); },
        [](const Effective& e) { return fmt::to_string(e.settings.micro_batch); }, always_active},
    Key{"gradient_accumulation_steps", Kind::whole, 1, kSequences,
        [](Effective& e, const Json& v) {
          e.settings.gradient_accumulation_steps = v.get<Index>();
        },
        [](const Effective& e) { return fmt::to_string(e.settings.gradient_accumulation_steps); },
        always_active},
    Key{"gradient_clipping", Kind::number, 0, kFloatMost,
        [](Effective& e, const Json& v) { e.settings.gradient_clipping = v.get<double>(); },
        [](const Effective& e) { return fmt::to_string(e.settings.gradient_clipping); },
        only_when_clipping},
    Key{"bf16.enabled", Kind::boolean, 0, 0,
        [](Effective& e, const Json& v) { enable(e.settings, Dtype::bf16, v); },
        [](const Effective& e) { return fmt::to_string(e.settings.dtype == Dtype::bf16); },
        always_active},
    Key{"bf16.check_grad_overflow", Kind::boolean, 0, 0,
        [](Effective& e, const Json& v) { e.settings.check_grad_overflow = v.get<bool>(); },
        [](const Effective& e) { return fmt::to_string(e.settings.check_grad_overflow); },
        only_bf16},
    Key{"fp16.enabled", Kind::boolean, 0, 0,
        [](Effective& e, const Json& v) { enable(e.settings, Dtype::fp16, v); },
        [](const Effective& e) { return fmt::to_string(e.settings.dtype == Dtype::fp16); },
        always_active},
    Key{"fp16.loss_scale", Kind::number, 0, kFloatMost,
        [](Effective& e, const Json& v) { e.settings.loss_scale.loss_scale = v.get<double>(); },
        [](const Effective& e) {
          const double scale = e.settings.loss_scale.loss_scale;
          return scale == 0 ? std::string("0 (dynamic)") : fmt::to_string(scale);
        },
        only_fp16},
    Key{"fp16.initial_scale_power", Kind::whole, 0, 126,
        [](Effective& e, const Json& v) {
          e.settings.loss_scale.initial_scale_power = v.get<int>();
        },
        [](const Effective& e) {
          return fmt::to_string(e.settings.loss_scale.initial_scale_power);
        },
        only_dynamic_scale},
    Key{"fp16.loss_scale_window", Kind::whole, 1, kElements,
        [](Effective& e, const Json& v) {
          e.settings.loss_scale.loss_scale_window = v.get<Index>();
        },
        [](const Effective& e) { return fmt::to_string(e.settings.loss_scale.loss_scale_window); },
        only_dynamic_scale},
    Key{"fp16.hysteresis", Kind::whole, 1, kElements,
        [](Effective& e, const Json& v) { e.settings.loss_scale.hysteresis = v.get<Index>(); },
        [](const Effective& e) { return fmt::to_string(e.settings.loss_scale.hysteresis); },
        only_dynamic_scale},
    Key{"fp16.consecutive_hysteresis", Kind::boolean, 0, 0,
        [](Effective& e, const Json& v) {
          e.settings.loss_scale.consecutive_hysteresis = v.get<bool>();
        },
        [](const Effective& e) {
          return fmt::to_string(e.settings.loss_scale.consecutive_hysteresis);
        },
        only_dynamic_scale},
    Key{"fp16.min_loss_scale", Kind::whole, 1, 0x1p53,
        [](Effective& e, const Json& v) { e.settings.loss_scale.min_loss_scale = v.get<double>(); },
        [](const Effective& e) { return fmt::to_string(e.settings.loss_scale.min_loss_scale); },
        only_dynamic_scale},
    Key{"data_types.param_dtype", Kind::dtype, 0, 0,
        [](Effective& /*effective*/, const Json& /*value*/) {},
        [](const Effective& e) { return std::string(name_of(e.settings.dtype)); }, always_active},
    Key{"data_types.grad_accum_dtype", Kind::dtype, 0, 0,
        [](Effective& e, const Json& v) { e.settings.grad_accum_dtype = dtype_in(v); },
        [](const Effective& e) { return std::string(name_of(e.settings.accumulation_dtype())); },
        always_active},
    Key{"communication_data_type", Kind::dtype, 0, 0,
        [](Effective& e, const Json& v) { e.settings.communication_data_type = dtype_in(v); },
        [](const Effective& e) { return std::string(name_of(e.settings.communication_dtype())); },
        always_active},
    Key{"prescale_gradients", Kind::boolean, 0, 0,
        [](Effective& e, const Json& v) { e.settings.prescale_gradients = v.get<bool>(); },
        [](const Effective& e) { return fmt::to_string(e.settings.prescale_gradients); },
        always_active},
    Key{"gradient_predivide_factor", Kind::number, 1e-30, kFloatMost,
        [](Effective& e, const Json& v) { e.settings.gradient_predivide_factor = v.get<double>(); },
        [](const Effective& e) { return fmt::to_string(e.settings.gradient_predivide_factor); },
        only_without_prescale},
    Key{"activation_checkpointing.enabled", Kind::boolean, 0, 0,
        [](Effective& e, const Json& v) { e.settings.activation_checkpointing = v.get<bool>(); },
        [](const Effective& e) { return fmt::to_string(e.settings.activation_checkpointing); },
        always_active},
    Key{"optimizer.type", Kind::text, 0, 0,
        [](Effective& e, const Json& v) {
          e.settings.optimizer.type = lower(v.get<std::string>()) == "sgd" ? Type::sgd : Type::adam;
        },
        [](const Effective& e) { return optimizer_name(e.settings.optimizer); }, always_active},
    Key{"optimizer.params.lr", Kind::number, 0, kFloatMost,
        [](Effective& e, const Json& v) { e.settings.optimizer.learning_rate = v.get<float>(); },
        [](const Effective& e) { return fmt::to_string(e.settings.optimizer.learning_rate); },
        always_active},
    Key{"optimizer.params.betas", Kind::pair, 0, 1,
        [](Effective& e, const Json& v) {
          e.settings.optimizer.beta1 = v[0].get<float>();
          e.settings.optimizer.beta2 = v[1].get<float>();
        },
        [](const Effective& e) {
          return fmt::format("[{}, {}]", e.settings.optimizer.beta1, e.settings.optimizer.beta2);
        },
        only_adam},
    Key{"optimizer.params.eps", Kind::number, 0, kFloatMost,
        [](Effective& e, const Json& v) { e.settings.optimizer.epsilon = v.get<float>(); },
        [](const Effective& e) { return fmt::to_string(e.settings.optimizer.epsilon); }, only_adam},
    Key{"optimizer.params.weight_decay", Kind::number, 0, kFloatMost,
        [](Effective& e, const Json& v) { e.settings.optimizer.weight_decay = v.get<float>(); },
        [](const Effective& e) { return fmt::to_string(e.settings.optimizer.weight_decay); },
        only_when_decaying},
    Key{"optimizer.params.momentum", Kind::number, 0, 1,
        [](Effective& e, const Json& v) { e.settings.optimizer.momentum = v.get<float>(); },
        [](const Effective& e) { return fmt::to_string(e.settings.optimizer.momentum); }, only_sgd},
    Key{"optimizer.params.adam_w_mode", Kind::boolean, 0, 0,
        [](Effective& e, const Json& v) { e.settings.optimizer.adam_w_mode = v.get<bool>(); },
        [](const Effective& e) { return fmt::to_string(e.settings.optimizer.adam_w_mode); },
        only_adam},
    Key{"scheduler.type", Kind::text, 0, 0,
        [](Effective& e, const Json& v) {
          e.settings.schedule.type = schedule_named(lower(v.get<std::string>()));
        },
        [](const Effective& e) { return schedule_name(e.settings.schedule.type); }, always_active},
    Key{"scheduler.params.warmup_num_steps", Kind::whole, 1, kElements,
        [](Effective& e, const Json& v) { e.settings.schedule.warmup_num_steps = v.get<Index>(); },
        [](const Effective& e) { return fmt::to_string(e.settings.schedule.warmup_num_steps); },
        any_scheduler},
    Key{"scheduler.params.warmup_type", Kind::text, 0, 0,
        [](Effective& e, const Json& v) {
          e.settings.schedule.warmup_type = lower(v.get<std::string>()) == "linear"
                                                ? ScheduleSettings::WarmupType::linear
                                                : ScheduleSettings::WarmupType::log;
        },
        [](const Effective& e) {
          const bool linear =
              e.settings.schedule.warmup_type == ScheduleSettings::WarmupType::linear;
          return std::string(linear ? "linear" : "log");
        },
        any_scheduler},
    Key{"scheduler.params.total_num_steps", Kind::whole, 1, kElements,
        [](Effective& e, const Json& v) { e.settings.schedule.total_num_steps = v.get<Index>(); },
        [](const Effective& e) {
          const Index total = e.settings.schedule.total_num_steps;
          return total == 0 ? std::string("none") : fmt::to_string(total);
        },
        only_falling},
    Key{"scheduler.params.warmup_min_lr", Kind::number, 0, kFloatMost,
        [](Effective& e, const Json& v) { e.settings.schedule.warmup_min_lr = v.get<float>(); },
        [](const Effective& e) { return fmt::to_string(e.settings.schedule.warmup_min_lr); },
        not_cosine},
    Key{"scheduler.params.warmup_max_lr", Kind::number, 0, kFloatMost,
        [](Effective& e, const Json& v) { e.settings.schedule.warmup_max_lr = v.get<float>(); },
        [](const Effective& e) {
          const std::optional<float> most = e.settings.schedule.warmup_max_lr;
          return most ? fmt::to_string(*most) : std::string("optimizer.params.lr");
        },
        not_cosine},
    Key{"scheduler.params.warmup_min_ratio", Kind::number, 0, 1,
        [](Effective& e, const Json& v) { e.settings.schedule.warmup_min_ratio = v.get<float>(); },
        [](const Effective& e) { return fmt::to_string(e.settings.schedule.warmup_min_ratio); },
        only_cosine},
    Key{"scheduler.params.cos_min_ratio", Kind::number, 0, 1,
        [](Effective& e, const Json& v) { e.settings.schedule.cos_min_ratio = v.get<float>(); },
        [](const Effective& e) { return fmt::to_string(e.settings.schedule.cos_min_ratio); },
        only_cosine},
    Key{"zero_optimization.stage", Kind::whole, 0, 3,
        [](Effective& e, const Json& v) { e.settings.zero.stage = v.get<int>(); },
        [](const Effective& e) { return fmt::to_string(e.settings.zero.stage); }, always_active},
    Key{"zero_optimization.overlap_comm", Kind::boolean, 0, 0,
        [](Effective& e, const Json& v) { e.settings.zero.overlap_comm = v.get<bool>(); },
        [](const Effective& e) { return fmt::to_string(e.settings.zero.overlap_comm); },
        always_active},
    Key{"zero_optimization.reduce_bucket_size", Kind::whole, 1, kElements,
        [](Effective& e, const Json& v) { e.settings.zero.reduce_bucket_size = v.get<Index>(); },
        [](const Effective& e) { return fmt::to_string(e.settings.zero.reduce_bucket_size); },
        always_active},
    Key{"zero_optimization.reduce_scatter", Kind::boolean, 0, 0,
        [](Effective& e, const Json& v) { e.settings.zero.reduce_scatter = v.get<bool>(); },
        [](const Effective& e) { return fmt::to_string(e.settings.zero.reduce_scatter); },
        not_in_stage_0},
    Key{"zero_optimization.contiguous_gradients", Kind::boolean, 0, 0,
        [](Effective& e, const Json& v) { e.settings.zero.contiguous_gradients = v.get<bool>(); },
        [](const Effective& e) { return fmt::to_string(e.settings.zero.contiguous_gradients); },
        only_stages_2_and_3},
    Key{"zero_optimization.reduce_every_micro_step", Kind::boolean, 0, 0,
        [](Effective& e, const Json& v) {
          e.settings.zero.reduce_every_micro_step = v.get<bool>();
        },
        [](const Effective& e) { return fmt::to_string(e.settings.zero.reduce_every_micro_step); },
        only_stages_0_and_1},
    Key{"zero_optimization.enable_sanity_checks", Kind::boolean, 0, 0,
        [](Effective& e, const Json& v) { e.settings.zero.enable_sanity_checks = v.get<bool>(); },
        [](const Effective& e) { return fmt::to_string(e.settings.zero.enable_sanity_checks); },
        always_active},
    Key{"zero_optimization.leaf_module.classes", Kind::names, 0, 0,
        [](Effective& e, const Json& v) { e.settings.zero.leaf_modules.classes = v; },
        [](const Effective& e) { return list_text(e.settings.zero.leaf_modules.classes); },
        always_active},
    Key{"zero_optimization.leaf_module.names", Kind::names, 0, 0,
        [](Effective& e, const Json& v) { e.settings.zero.leaf_modules.names = v; },
        [](const Effective& e) { return list_text(e.settings.zero.leaf_modules.names); },
        always_active},
    Key{"zero_optimization.leaf_module.name_suffixes", Kind::names, 0, 0,
        [](Effective& e, const Json& v) { e.settings.zero.leaf_modules.name_suffixes = v; },
        [](const Effective& e) { return list_text(e.settings.zero.leaf_modules.name_suffixes); },
        always_active},
    Key{"zero_optimization.stage3_prefetch_bucket_size", Kind::whole, 0, kElements,
        [](Effective& e, const Json& v) { e.settings.zero.prefetch_bucket_size = v.get<Index>(); },
        [](const Effective& e) { return fmt::to_string(e.settings.zero.prefetch_bucket_size); },
        only_stage_3},
    Key{"zero_optimization.stage3_param_persistence_threshold", Kind::whole, 0, kElements,
        [](Effective& e, const Json& v) {
          e.settings.zero.param_persistence_threshold = v.get<Index>();
        },
        [](const Effective& e) {
          return fmt::to_string(e.settings.zero.param_persistence_threshold);
        },
        only_stage_3},
    Key{"zero_optimization.stage3_model_persistence_threshold", Kind::whole, 0, kCountable,
        [](Effective& e, const Json& v) {
          e.settings.zero.model_persistence_threshold = v.get<Index>();
        },
        [](const Effective& e) { return limit_text(e.settings.zero.model_persistence_threshold); },
        only_stage_3},
    Key{"zero_optimization.stage3_max_live_parameters", Kind::whole, 0, kElements,
        [](Effective& e, const Json& v) { e.settings.zero.max_live_parameters = v.get<Index>(); },
        [](const Effective& e) { return fmt::to_string(e.settings.zero.max_live_parameters); },
        only_when_prefetching},
    Key{"zero_optimization.stage3_max_reuse_distance", Kind::whole, 0, kElements,
        [](Effective& e, const Json& v) { e.settings.zero.max_reuse_distance = v.get<Index>(); },
        [](const Effective& e) { return fmt::to_string(e.settings.zero.max_reuse_distance); },
        only_stage_3},
    Key{"zero_optimization.log_trace_cache_warnings", Kind::boolean, 0, 0,
        [](Effective& e, const Json& v) {
          e.settings.zero.log_trace_cache_warnings = v.get<bool>();
        },
        [](const Effective& e) { return fmt::to_string(e.settings.zero.log_trace_cache_warnings); },
        only_stage_3},
    Key{"zero_optimization.auto_register_external_parameters", Kind::boolean, 0, 0,
        [](Effective& e, const Json& v) {
          e.settings.zero.auto_register_external_parameters = v.get<bool>();
        },
        [](const Effective& e) {
          return fmt::to_string(e.settings.zero.auto_register_external_parameters);
        },
        only_stage_3},
    Key{"zero_optimization.stage3_gather_16bit_weights_on_model_save", Kind::boolean, 0, 0,
        [](Effective& e, const Json& v) {
          e.settings.zero.gather_16bit_weights_on_model_save = v.get<bool>();
        },
        [](const Effective& e) {
          return fmt::to_string(e.settings.zero.gather_16bit_weights_on_model_save);
        },
        only_stage_3},
    Key{"checkpoint.tag_validation", Kind::text, 0, 0,
        [](Effective& e, const Json& v) {
          e.settings.tag_validation = tag_validation_named(lower(v.get<std::string>()));
        },
        [](const Effective& e) { return tag_validation_name(e.settings.tag_validation); },
        always_active},
};

std::optional<std::string> check_whole(double least, double most, Json& value) {
  const double number = value.get<double>();
  if (number != std::floor(number)) {
    return fmt::format("is {}; it must be a whole number", value.dump());
  }
  if (number < least || number > most) {
    return fmt::format("is {}; it must be from {:.15g} to {:.15g}", value.dump(), least, most);
  }
  if (number >= kCountable) {
    value = std::numeric_limits<Index>::max();
  } else if (value.is_number_float()) {
    value = static_cast<Index>(number);
  }
  return std::nullopt;
}

// Both in [0, 1), also after rounding to fp32: a beta of 1 never corrects its bias.
std::optional<std::string> check_betas(const Json& value) {
  const auto good = [](const Json& beta) {
    return beta.is_number() && beta.get<double>() >= 0 && beta.get<float>() < 1;
  };
  if (value.is_array() && value.size() == 2 && good(value[0]) && good(value[1])) {
    return std::nullopt;
  }
  return fmt::format("is {}; it must be a list of two numbers, each at least 0 and below 1",
                     value.dump());
}

}  // namespace

std::span<const Key> keys() { return kKeys; }

std::optional<std::string> check_kind(Kind kind, double least, double most, Json& value) {
  const auto wrong_type = [&value](std::string_view wanted) {
    return fmt::format("is {} ({}); it must be {}", value.dump(), type_name(value), wanted);
  };
  switch (kind) {
    case Kind::boolean:
      if (!value.is_boolean()) return wrong_type("true or false");
      break;
    case Kind::whole:
    case Kind::number:
      if (value.is_string()) return wrong_type("a number, written without quotes");
      if (!value.is_number()) {
        return wrong_type(kind == Kind::whole ? "a whole number" : "a number");
      }
      if (kind == Kind::whole) return check_whole(least, most, value);
      if (value.get<double>() < least || value.get<double>() > most) {
        return fmt::format("is {}; it must be from {:.6g} to {:.6g}", value.dump(), least, most);
      }
      break;
    case Kind::text:
      if (!value.is_string()) return wrong_type("a string");
      break;
    case Kind::pair:
      return check_betas(value);
    case Kind::names: {
      if (value.is_string()) value = Json::array({value});
      const auto is_text = [](const Json& each) { return each.is_string(); };
      if (!value.is_array() || !std::all_of(value.begin(), value.end(), is_text)) {
        return wrong_type("a list of strings");
      }
      break;
    }
    case Kind::dtype:
      if (value.is_string()) value = lower(value.get<std::string>());
      if (!value.is_null() && !dtype_in(value)) {
        return fmt::format("is {}; it must be \"fp32\", \"bf16\" or \"fp16\"", value.dump());
      }
      break;
    case Kind::block:
      break;
  }
  return std::nullopt;
}

}  // namespace zerolab
