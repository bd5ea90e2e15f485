#include "visualize/report/theory.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "visualize/verify/reference.hpp"

namespace zerolab::report {
namespace {

using log::Op;

constexpr const char* kBf16 = "bf16.enabled";
constexpr const char* kFp16 = "fp16.enabled";

bool is_on(const log::RunDetails& details, const char* key) {
  return details.setting(key) == "true";
}

bool sixteen_bit(const log::RunDetails& details, const std::string& dtype) {
  return !dtype.empty() ? dtype != "fp32" : is_on(details, kBf16) || is_on(details, kFp16);
}

/// Moments that the optimizer keeps of every parameter, if that is known.
std::optional<double> moments_of(const log::RunDetails& details) {
  const auto type = details.setting("optimizer.type");
  if (type == "Adam" || type == "AdamW") return 2;
  if (type != "SGD") return std::nullopt;
  const auto momentum = details.setting("optimizer.params.momentum");
  return momentum && *momentum != "0" ? 1 : 0;
}

/// Elements of a rank, with padding.
struct Sizes {
  double parameters = 0;  // held of the parameters
  double trained = 0;     // of those that are trained, whole
  double piece = 0;       // of those that are trained, the part that a rank owns
  double whole = 0;       // persistent ones
};

Sizes sizes_of(const log::Run& run) {
  const verify::Padding padding(run);
  const auto ranks = static_cast<double>(run.world_size);
  Sizes sizes;
  for (std::size_t i = 0; i < run.parameters.size(); ++i) {
    const log::Parameter& parameter = run.parameters[i];
    if (run.stage < 3) {
      if (!parameter.trainable) sizes.parameters += static_cast<double>(parameter.numel);
      continue;
    }
    const auto elements = static_cast<double>(padding.elements(i));
    sizes.parameters += elements / ranks;
    if (parameter.persistent) sizes.whole += elements;
    if (!parameter.trainable) continue;
    sizes.trained += elements;
    sizes.piece += elements / ranks;
  }
  if (run.stage < 3) {
    sizes.trained = static_cast<double>(padding.flat());
    sizes.parameters += sizes.trained;
    sizes.piece = sizes.trained / ranks;
  }
  return sizes;
}

std::string formula_of(Count stage, double whole, double shared) {
  if (stage == 0) return fmt::format("{}", whole + shared);
  if (whole == 0) return fmt::format("{}/N", shared);
  return fmt::format("{} + {}/N", whole, shared);
}

std::optional<Theory::States> states_of(const log::Run& run, const log::RunDetails& details,
                                        bool sixteen) {
  const auto moments = moments_of(details);
  if (!moments) return std::nullopt;
  const Sizes sizes = sizes_of(run);
  const double element = sixteen ? 2 : 4;
  const double gradient =
      details.setting("data_types.grad_accum_dtype").value_or("") == "fp32" ? 4 : element;
  const double optimizer = 4 * *moments + (sixteen ? 4 : 0);  // moments, and the fp32 master
  Theory::States states;
  states.parameters = element * sizes.parameters;
  states.gradients = gradient * (run.stage < 2 ? sizes.trained : sizes.piece);
  states.optimizer = optimizer * (run.stage < 1 ? sizes.trained : sizes.piece);
  states.whole = element * sizes.whole;
  const double parts = (run.stage < 1 ? 0 : optimizer) + (run.stage < 2 ? 0 : gradient) +
                       (run.stage < 3 ? 0 : element);
  const double all = element + gradient + optimizer;
  states.formula =
      run.stage == 0 ? formula_of(0, all, 0) : formula_of(run.stage, all - parts, parts);
  states.per_parameter = all - parts + parts / static_cast<double>(run.world_size);
  return states;
}

/// Modules that read a parameter.
double readers_of(const log::Run& run, const std::string& parameter) {
  const auto has = [&](const std::vector<std::string>& names) {
    return std::find(names.begin(), names.end(), parameter) != names.end();
  };
  return static_cast<double>(std::count_if(
      run.modules.begin(), run.modules.end(),
      [&](const log::Module& module) { return has(module.parameters) || has(module.external); }));
}

}  // namespace

Theory theory_of(const log::Run& run, const log::RunDetails& details, const std::string& dtype) {
  const bool sixteen = sixteen_bit(details, dtype);
  Theory theory;
  theory.states = states_of(run, details, sixteen);
  const auto ranks = static_cast<double>(run.world_size);
  const double share = (ranks - 1) / ranks;
  const double element = sixteen ? 2 : 4;
  const double reduced =
      details.setting("communication_data_type").value_or("fp32") == "fp32" ? 4 : 2;
  const double micro_steps =
      static_cast<double>(details.count_setting("gradient_accumulation_steps").value_or(1));
  const bool every = run.stage >= 2 || is_on(details, "zero_optimization.reduce_every_micro_step");
  const double reductions = every ? micro_steps : 1;
  const bool scatters =
      run.stage > 0 && details.setting("zero_optimization.reduce_scatter") != "false";
  const double trained = sizes_of(run).trained;
  const Op reduce = scatters ? Op::reduce_scatter : Op::all_reduce;
  theory.sent.push_back({reduce, (scatters ? 1 : 2) * reductions * trained * reduced * share});
  if (run.stage == 0) {
    theory.formula = "2 \u03a8 s (N\u22121)/N";
    return theory;
  }
  double gathered = trained;
  theory.formula = run.stage == 2 ? "(G+1) \u03a8 s (N\u22121)/N" : "2 \u03a8 s (N\u22121)/N";
  if (run.stage == 3) {
    const verify::Padding padding(run);
    gathered = 0;
    for (std::size_t i = 0; i < run.parameters.size(); ++i) {
      const auto elements = static_cast<double>(padding.elements(i));
      const double uses = 2 * micro_steps * readers_of(run, run.parameters[i].name);
      gathered += elements * (run.parameters[i].persistent ? 1 : uses);
    }
    theory.formula = "G (2k+1) \u03a8 s (N\u22121)/N";
    theory.exact = false;
  }
  theory.sent.push_back({Op::all_gather, gathered * element * share});
  return theory;
}

}  // namespace zerolab::report
