#include "lab/run.hpp"

#include <fmt/format.h>

#include <fstream>
#include <iostream>
#include <utility>

#include "lab/failures/mistakes/mistake.hpp"
#include "lab/installed.hpp"
#include "lab/link_option.hpp"
#include "lab/run_folder.hpp"
#include "lab/run_json.hpp"
#include "lab/show.hpp"
#include "lab/version.hpp"
#include "stages/base/json_text.hpp"
#include "stages/comm/agreement.hpp"
#include "stages/comm/job.hpp"
#include "stages/engine/prepare_model.hpp"
#include "stages/engine/summary.hpp"
#include "stages/stages.hpp"
#include "stages/zero3/persistence.hpp"

namespace zerolab {
namespace {

constexpr Index kValidationSequences = 32;

// What must be the same on every rank, or the ranks would train different things.
nlohmann::ordered_json facts(const Plan& plan, const std::vector<Effective>& effective) {
  const RunOptions& options = plan.options;
  const Text& text = plan.data->text();
  nlohmann::ordered_json json{
      {"version", version()},
      {"--model", to_json(plan.model)},
      {"--data", fmt::format("{} bytes, XXH64 {}", text.size(), hash_text(text.hash))},
      {"--steps", options.steps},
      {"--seed", options.seed},
      {"--validate-every", options.validate_every},
      {"--freeze", options.frozen},
      {"--threads", options.threads},
      {"--link", to_string(options.link)},
      {"--check-collectives", options.check_collectives},
      {"--break", options.broken.value_or("nothing")},
      {"--mend", options.mended.value_or("nothing")},
      {"--out", options.out},
      {"trainings", effective.size()}};
  if (options.generate) {
    const Sampling& sampling = *options.generate;
    json.update({{"--generate", sampling.count},
                 {"--generate-every", options.generate_every},
                 {"--prompt", bytes_as_text(sampling.prompt)},
                 {"--temperature", sampling.temperature},
                 {"--top-k", sampling.top_k}});
  }
  for (const Effective& stage : effective) {
    for (const SettingRow& row : stage.rows) {
      json[fmt::format("{} (stage {})", row.key, stage.settings.zero.stage)] = row.value;
    }
  }
  return json;
}

/// What is done wrong on purpose, for whoever reads what comes of it.
std::optional<std::string> mistake_of(const Plan& plan) {
  if (!plan.options.broken) return std::nullopt;
  const Mistake mistake = find_mistake(*plan.options.broken, "--break");
  return fmt::format("--break {}: {}, on purpose", mistake.name, mistake.what);
}

[[noreturn]] void cannot_write(const std::filesystem::path& file) {
  throw Error(Code::output_folder, fmt::format("'{}' cannot be written", file.string()),
              "choose a folder on a disk with space, that you may write to, with --out");
}

}  // namespace

Plan make_plan(const RunOptions& options, std::string command_line, int ranks) {
  Plan plan;
  plan.options = options;
  plan.command_line = std::move(command_line);
  plan.ranks = ranks;
  plan.model = describe_model(options.model);
  Text text = options.data ? load_text(*options.data)
                           : load_default_text("/usr/share/common-licenses",
                                               installed("share/doc/zerolab/guides"));
  auto data = std::make_shared<ByteData>(std::move(text), options.seed);
  data->check_fits(plan.model.sequence_length, plan.model.vocab_size);
  plan.data = std::move(data);
  if (options.generate) check_sampling(*options.generate, plan.model.vocab_size);
  return plan;
}

std::vector<Given> preset_settings(const ModelDescription& model) {
  const RunDefaults defaults = run_defaults(model);
  const std::string source = "preset " + model.name;
  return {{"train_micro_batch_size_per_gpu", defaults.micro_batch, source},
          {"optimizer.params.lr", defaults.learning_rate, source},
          {"zero_optimization.reduce_bucket_size", defaults.reduce_bucket_size, source},
          {"zero_optimization.stage3_prefetch_bucket_size", defaults.prefetch_bucket_size, source},
          {"zero_optimization.stage3_param_persistence_threshold",
           defaults.param_persistence_threshold, source},
          {"zero_optimization.stage3_max_reuse_distance", defaults.max_reuse_distance, source}};
}

std::unique_ptr<Model> build_model_of(const Plan& plan) {
  std::unique_ptr<Model> model = build_model(plan.model);
  for (const std::string& name : plan.options.frozen) model->parameters().freeze(name);
  return model;
}

Effective settings_for(const Plan& plan, std::optional<int> stage) {
  ResolveInput input;
  input.preset = preset_settings(plan.model);
  if (plan.options.config) input.file = read_config_file(*plan.options.config);
  input.flags = plan.options.settings;
  if (stage) input.flags.push_back({"zero_optimization.stage", *stage, "--stages"});
  input.world_size = plan.ranks;
  input.world_size_source = plan.options.ranks  ? fmt::format("-n {}", plan.ranks)
                            : launched_by_mpi() ? "mpirun"
                                                : "without -n";
  Effective effective = resolve(input);
  const std::unique_ptr<Model> model = build_model_of(plan);
  const std::string whole =
      why_nothing_is_released(model->parameters().sizes(), effective.settings.zero);
  if (!whole.empty()) effective.warnings.push_back(whole);
  if (effective.settings.activation_checkpointing && model->root().segments().empty()) {
    effective.warnings.emplace_back(
        "activation_checkpointing.enabled has no effect: this model has no blocks to recompute");
  }
  prepare_model(*model, effective.settings);  // refuses now what the run would refuse later
  if (const auto mistake = mistake_of(plan)) effective.warnings.push_back(*mistake);
  return effective;
}

Training training_for(const Plan& plan, const Effective& effective, int rank) {
  Training training;
  training.build = [plan] { return build_model_of(plan); };
  training.stage = [](Runtime& runtime) { return make_stage(runtime); };
  training.sequence_length = plan.model.sequence_length;
  training.settings = effective.settings;
  training.seed = plan.options.seed;
  training.steps = plan.options.steps;
  training.device_memory = plan.options.device_memory;
  training.threads = plan.options.threads;
  training.link = plan.options.link;
  training.check_collectives = plan.options.check_collectives;
  training.vocab_size = plan.model.vocab_size;
  training.generate = plan.options.generate;
  training.generate_every = plan.options.generate_every;
  training.batches = [data = plan.data](Index step, Index position, Index count, Index length,
                                        std::int32_t* tokens, std::int32_t* targets) {
    data->fill_batch(step, position, count, length, tokens, targets);
  };
  if (plan.data->validation_sequences(training.sequence_length) > 0) {
    training.validation = [data = plan.data](Index, Index position, Index count, Index length,
                                             std::int32_t* tokens, std::int32_t* targets) {
      data->fill_validation(position, count, length, tokens, targets);
    };
    training.validation_sequences = kValidationSequences;
    training.validate_every = plan.options.validate_every;
  }
  if (plan.options.broken) find_mistake(*plan.options.broken, "--break").make(training, rank);
  if (plan.options.mended) find_mistake(*plan.options.mended, "--mend").mend(training, rank);
  return training;
}

std::unique_ptr<Recorder> recorder_for(const Communicator& communicator, const RunOptions& options,
                                       const std::filesystem::path& folder) {
  std::unique_ptr<std::ostream> lines;
  if (options.log_level != LogLevel::off) {
    const std::filesystem::path file =
        folder / fmt::format("rank{}.events.jsonl", communicator.rank());
    lines = std::make_unique<std::ofstream>(file);
    if (!*lines) cannot_write(file);
  }
  auto recorder = std::make_unique<Recorder>(communicator.rank(), std::move(lines));
  if (options.log_level == LogLevel::steps) recorder->write_steps_only();
  if (communicator.rank() == 0) show_events(*recorder, options.show);
  return recorder;
}

RankReport run_in_folder(Communicator& communicator, Recorder& recorder, const Plan& plan,
                         const Effective& effective, const Training& training,
                         const std::filesystem::path& folder) {
  const bool writes = communicator.rank() == 0;
  if (writes) write_json(folder / "run.json", run_json(plan, effective, training, communicator));
  if (writes && effective.settings.zero.log_trace_cache_warnings) show_notes(recorder, std::cerr);
  if (const auto mistake = mistake_of(plan)) recorder.record(NoteEvent{*mistake});
  RankReport report = train(communicator, recorder, training);
  recorder.flush();
  if (writes) {
    write_json(folder / "summary.json", summary_json(report, training, communicator.size()));
  }
  return report;
}

void prepare_together(Communicator& communicator, const Plan& plan,
                      const std::vector<Effective>& effective,
                      const std::vector<std::string>& subfolders) {
  agree(communicator, facts(plan, effective));
  if (communicator.rank() == 0) {
    const std::filesystem::path folder = plan.options.out;
    prepare_run_folder(folder);
    for (const std::string& name : subfolders) std::filesystem::create_directory(folder / name);
  }
  meet(communicator, "run folder");
  *plan.folder_is_ours = true;
}

void write_json(const std::filesystem::path& file, const nlohmann::ordered_json& json) {
  std::ofstream out(file);
  // What is no UTF-8 in a command line or a path is told as well as it can be.
  out << json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) << '\n';
  out.close();
  if (!out) cannot_write(file);
}

}  // namespace zerolab
