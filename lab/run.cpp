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
#include "stages/checkpoint/consolidate.hpp"
#include "stages/checkpoint/weights_file.hpp"
#include "stages/comm/agreement.hpp"
#include "stages/comm/job.hpp"
#include "stages/engine/prepare_model.hpp"
#include "stages/engine/summary.hpp"
#include "stages/stages.hpp"
#include "stages/zero3/persistence.hpp"

namespace zerolab {
namespace {

constexpr Index kValidationSequences = 32;

/// What is done wrong on purpose, for whoever reads what comes of it.
std::optional<std::string> mistake_of(const Plan& plan) {
  if (!plan.options.broken) return std::nullopt;
  const Mistake mistake = find_mistake(*plan.options.broken, "--break");
  return fmt::format("--break {}: {}, on purpose", mistake.name, mistake.what);
}

// The model of what is resumed or imported, which need not be named again.
ModelDescription model_of(const RunOptions& options, const Resumed* resumed) {
  std::optional<ModelDescription> theirs;
  std::string from;
  if (resumed != nullptr) {
    theirs = resumed->model;
    from = resumed->name();
  } else if (options.weights) {
    from = *options.weights;
    const auto metadata = read_header(from).metadata;
    const auto note = metadata.find(std::string(kModelNote));
    if (note != metadata.end()) theirs = parse_model(note->second, from);
  }
  if (!options.model && theirs) return *theirs;
  if (!options.model && options.weights) {
    throw Error(Code::usage,
                fmt::format("{} does not say of what model its weights are", *options.weights),
                "name it with --model: a preset, or a JSON file that describes it");
  }
  ModelDescription model = describe_model(options.model.value_or(std::string(kDefaultModel)));
  if (resumed != nullptr && !(model == *theirs)) {
    throw Error(Code::checkpoint_mismatch,
                fmt::format("{} is of the model {}, and --model {} is another one", from,
                            theirs->name, *options.model),
                "leave --model out, or name a checkpoint of that model");
  }
  return model;
}

std::optional<std::string> data_path(const Plan& plan) {
  if (plan.options.data || !plan.resumed) return plan.options.data;
  return plan.resumed->data;
}

Text text_of(const Plan& plan) {
  const std::optional<std::string> path = data_path(plan);
  if (path) return load_text(*path);
  return load_default_text("/usr/share/common-licenses", installed("share/doc/zerolab/guides"));
}

void refuse_nothing_left(const Plan& plan) {
  if (!plan.resumed || plan.resumed->steps() < plan.options.steps) return;
  const Index done = plan.resumed->steps();
  throw Error(Code::usage,
              fmt::format("{} has done {} steps, and --steps {} are the steps in all",
                          plan.resumed->name(), done, plan.options.steps),
              fmt::format("ask for more, as --steps {}, or let it write: zerolab generate --resume "
                          "{}",
                          done + plan.options.steps, plan.resumed->name()));
}

// What is not as it was when the checkpoint was saved.
std::vector<std::string> changes_since(const Plan& plan, const Effective& effective) {
  std::vector<std::string> changes;
  if (!plan.resumed) {
    if (plan.options.resume) {
      changes.push_back(fmt::format("there is no checkpoint in {} yet: training begins anew",
                                    *plan.options.saving.folder));
    }
    return changes;
  }
  const Resumed& resumed = *plan.resumed;
  const auto changed = [&changes](std::string_view what, const auto& then, const auto& now) {
    if (then != now) {
      changes.push_back(
          fmt::format("{} was {} when the checkpoint was saved, and is {} now", what, then, now));
    }
  };
  changed("the seed of the batches", resumed.seed, plan.seed);
  if (plan.data != nullptr) {
    changed("the hash of the text", hash_text(resumed.data_hash),
            hash_text(plan.data->text().hash));
  }
  changed("the type of the weights", name_of(resumed.checkpoint.manifest().dtype),
          name_of(effective.settings.dtype));
  changed("train_batch_size", resumed.train_batch_size, effective.train_batch_size);
  return changes;
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
  plan.resumed = resumed_by(options);
  plan.model = model_of(options, plan.resumed.get());
  plan.seed = options.seed.value_or(plan.resumed ? plan.resumed->seed : kDefaultSeed);
  plan.frozen = options.frozen.empty() && plan.resumed ? plan.resumed->frozen : options.frozen;
  if (plan.options.generate) {
    plan.options.generate->seed = plan.seed;
    check_sampling(*plan.options.generate, plan.model.vocab_size);
  }
  if (options.command == Command::generate) return plan;
  refuse_nothing_left(plan);
  Text text = text_of(plan);
  auto data = std::make_shared<ByteData>(std::move(text), plan.seed);
  data->check_fits(plan.model.sequence_length, plan.model.vocab_size);
  plan.data = std::move(data);
  return plan;
}

nlohmann::ordered_json run_for_checkpoint(const Plan& plan, const Effective& effective) {
  const Text& text = plan.data->text();
  const std::optional<std::string> path = data_path(plan);
  return {{"zerolab", version()},
          {"command", plan.command_line},
          {"model", to_json(plan.model)},
          {"seed", plan.seed},
          {"data",
           {{"path", path ? nlohmann::ordered_json(std::filesystem::absolute(*path)) : nullptr},
            {"bytes", text.size()},
            {"xxh64", hash_text(text.hash)}}},
          {"freeze", plan.frozen},
          {"train_batch_size", effective.train_batch_size},
          {"settings", effective.given}};
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
  for (const std::string& name : plan.frozen) model->parameters().freeze(name);
  return model;
}

Effective settings_for(const Plan& plan, std::optional<int> stage) {
  ResolveInput input;
  input.preset = preset_settings(plan.model);
  if (plan.resumed) input.checkpoint = plan.resumed->settings;
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
  // Refuse now what the run would refuse later.
  prepare_model(*model, effective.settings);
  refuse_nothing_to_train(model->parameters());
  for (const std::string& change : changes_since(plan, effective)) {
    effective.warnings.push_back(change);
  }
  if (const auto mistake = mistake_of(plan)) effective.warnings.push_back(*mistake);
  if (plan.options.saving.weights_file) expect_may_consolidate(effective.settings);
  return effective;
}

Training training_for(const Plan& plan, const Effective& effective, int rank) {
  Training training;
  training.build = [plan] { return build_model_of(plan); };
  training.stage = [](Runtime& runtime) { return make_stage(runtime); };
  training.sequence_length = plan.model.sequence_length;
  training.settings = effective.settings;
  training.seed = plan.seed;
  training.steps = plan.options.steps;
  training.device_memory = plan.options.device_memory;
  training.threads = plan.options.threads;
  training.link = plan.options.link;
  training.check_collectives = plan.options.check_collectives;
  training.vocab_size = plan.model.vocab_size;
  training.generate = plan.options.generate;
  training.generate_every = plan.options.generate_every;
  if (plan.data == nullptr) return training;  // nothing is trained
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
  if (plan.options.broken) {
    const Mistake mistake = find_mistake(*plan.options.broken, "--break");
    if (mistake.make) mistake.make(training, rank);
  }
  if (plan.options.mended) find_mistake(*plan.options.mended, "--mend").mend(training, rank);
  return training;
}

nlohmann::ordered_json facts_of(const Plan& plan, const std::vector<Effective>& effective) {
  const RunOptions& options = plan.options;
  nlohmann::ordered_json json{{"version", version()},
                              {"--model", to_json(plan.model)},
                              {"--steps", options.steps},
                              {"--seed", plan.seed},
                              {"--validate-every", options.validate_every},
                              {"--freeze", plan.frozen},
                              {"--threads", options.threads},
                              {"--link", to_string(options.link)},
                              {"--check-collectives", options.check_collectives},
                              {"--break", options.broken.value_or("nothing")},
                              {"--mend", options.mended.value_or("nothing")},
                              {"--out", options.out},
                              {"--save", options.saving.folder.value_or("nowhere")},
                              {"--save-every", options.saving.every},
                              {"--keep", options.saving.keep},
                              {"--save-model", options.saving.weights_file.value_or("nowhere")},
                              {"trainings", effective.size()}};
  if (plan.data != nullptr) {
    const Text& text = plan.data->text();
    json["--data"] = fmt::format("{} bytes, XXH64 {}", text.size(), hash_text(text.hash));
  }
  if (plan.resumed) {
    json["--resume"] = fmt::format("{}, XXH3 {}", plan.resumed->name(),
                                   hash_text(plan.resumed->checkpoint.fingerprint()));
  }
  if (options.weights) {
    json["weights"] =
        fmt::format("{}, {} bytes", *options.weights, InputFile(*options.weights).bytes());
  }
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
                         const std::filesystem::path& folder,
                         const std::vector<CheckpointResult>& saved) {
  const bool writes = communicator.rank() == 0;
  if (writes) write_json(folder / "run.json", run_json(plan, effective, training, communicator));
  if (writes && effective.settings.zero.log_trace_cache_warnings) show_notes(recorder, std::cerr);
  if (const auto mistake = mistake_of(plan)) recorder.record(NoteEvent{*mistake});
  RankReport report = train(communicator, recorder, training);
  report.checkpoints = saved;
  recorder.flush();
  if (writes) {
    write_json(folder / "summary.json", summary_json(report, training, communicator.size()));
  }
  return report;
}

void prepare_together(Communicator& communicator, const Plan& plan,
                      const std::vector<Effective>& effective,
                      const std::vector<std::string>& subfolders) {
  agree(communicator, facts_of(plan, effective));
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
