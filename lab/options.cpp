#include "lab/options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <CLI/CLI.hpp>
#include <cmath>
#include <sstream>

#include "lab/byte_size.hpp"
#include "lab/link_option.hpp"
#include "lab/version.hpp"
#include "stages/base/error.hpp"
#include "stages/base/nearest.hpp"

namespace zerolab {
namespace {

constexpr std::string_view kAbout =
    "zerolab trains one model with ZeRO stage 0, 1, 2 or 3 and tells everything it does.";

constexpr std::string_view kFooter = R"(Examples:
  zerolab compare -n 4                            four ranks as threads, all four stages
  mpirun -n 4 zerolab compare                     the same as four processes
  zerolab train --stage 3 --show transitions      watch parameters come and go
  zerolab train --stage 2 --config ds_config.json a DeepSpeed configuration
  zerolab train --stage 0 --device-memory 4MiB    what does not fit, and why
  zerolab train --steps 300 --generate 400        what the model has learned to write

Exit codes:
  0 done       2 usage or configuration   4 parameter state   7 communication
  1 internal   3 out of memory            5 numerics          128 + n: ended by signal n
docs/errors.md explains each error code, docs/configuration.md each setting.)";

#ifdef ZEROLAB_CHECK_COLLECTIVES
constexpr bool kCheckCollectives = true;
#else
constexpr bool kCheckCollectives = false;
#endif

// What CLI11 fills in; texts become values afterwards, where our own messages are better.
struct Raw {
  RunOptions options;
  std::string micro_batch, accumulation, learning_rate, bucket, stage, memory;
  std::string prefetch, persistence, live, reuse, link;
  std::string data, config, mistake, log_level = "events";
  std::vector<std::string> show;
  std::optional<Index> generate, generate_every, top_k;
  std::optional<std::string> prompt, temperature;
  bool overlap = false, no_overlap = false, checkpointing = false;
  bool check_collectives = false, no_check_collectives = false;
  int ranks = 0;
};

// CLI11 prints options by group; those added since the last call get this one.
void name_group(CLI::App& app, const std::string& name) {
  for (CLI::Option* option : app.get_options()) {
    if (option->get_group() == "Options" && option != app.get_help_ptr()) option->group(name);
  }
}

CLI::Validator whole_number(Index least, Index most) {
  return CLI::Validator(
      [least, most](std::string& text) -> std::string {
        const bool digits = !text.empty() && text.size() < 19 &&
                            text.find_first_not_of("0123456789") == std::string::npos;
        if (digits && std::stoll(text) >= least && std::stoll(text) <= most) return {};
        return fmt::format("{} is not a whole number from {} to {}", text, least, most);
      },
      "", "");
}

void add_what_to_train(CLI::App& app, Raw& raw) {
  RunOptions& options = raw.options;
  app.add_option("--model", options.model,
                 "mlp-small, gpt-nano, gpt-mini, gpt2, or a JSON file that describes a model")
      ->type_name("NAME")
      ->capture_default_str();
  app.add_option("--data", raw.data, "What to learn from [the licence texts of the system]")
      ->type_name("FILE|FOLDER");
  app.add_option("--steps", options.steps, "Optimizer steps")
      ->check(whole_number(1, 1'000'000'000))
      ->type_name("COUNT")
      ->capture_default_str();
  app.add_option("--seed", options.seed, "Of initial weights and batches")
      ->check(whole_number(0, 999'999'999'999'999'999))
      ->type_name("NUMBER")
      ->capture_default_str();
  app.add_option("--validate-every", options.validate_every,
                 "Steps between validations; 0: after the last step only")
      ->check(whole_number(0, 1'000'000'000))
      ->type_name("STEPS")
      ->capture_default_str();
  app.add_option("--freeze", options.frozen,
                 "Parameters that are not trained, or modules with all of theirs")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->type_name("NAME,NAME...");
  name_group(app, "What to train");
}

void add_settings(CLI::App& app, Raw& raw) {
  app.add_option("--config,--deepspeed_config", raw.config, "DeepSpeed-style settings, JSON")
      ->type_name("FILE");
  if (raw.options.command == Command::train) {
    app.add_option("--stage", raw.stage,
                   "What is sharded: 0 nothing, 1 optimizer states, 2 gradients too, 3 parameters "
                   "too [0]")
        ->type_name("K");
  } else {
    app.add_option("--stages", raw.options.stages, "The stages to compare")
        ->delimiter(',')
        ->allow_extra_args(false)
        ->check(whole_number(0, 3))
        ->type_name("K,K...")
        ->default_str("0,1,2,3");
  }
  app.add_option("--micro-batch", raw.micro_batch, "Sequences per rank and micro-step")
      ->type_name("COUNT");
  app.add_option("--gradient-accumulation-steps", raw.accumulation,
                 "Micro-steps per optimizer step")
      ->type_name("COUNT");
  app.add_option("--learning-rate", raw.learning_rate, "Of the optimizer")->type_name("NUMBER");
  app.add_option("--reduce-bucket-size", raw.bucket, "Elements per gradient bucket")
      ->type_name("COUNT");
  app.add_option("--prefetch-bucket-size", raw.prefetch,
                 "Stage 3: elements gathered ahead of the module that reads them; 0: none")
      ->type_name("COUNT");
  app.add_option("--param-persistence-threshold", raw.persistence,
                 "Stage 3: parameters of at most so many elements stay whole")
      ->type_name("COUNT");
  app.add_option("--max-live-parameters", raw.live,
                 "Stage 3: elements whole beyond which nothing is prefetched")
      ->type_name("COUNT");
  app.add_option("--max-reuse-distance", raw.reuse,
                 "Stage 3: elements read until the next use, for a parameter to stay whole")
      ->type_name("COUNT");
  app.add_flag("--activation-checkpointing", raw.checkpointing,
               "Keep only the input of each block, and run it again in backward");
  app.add_flag("--overlap-comm", raw.overlap, "Communicate while compute goes on");
  app.add_flag("--no-overlap-comm", raw.no_overlap, "Do not");
  name_group(app, "Settings (a flag beats the file, the file the model's preset)");
}

void add_where_it_runs(CLI::App& app, Raw& raw) {
  app.add_option(
         "-n,--ranks", raw.ranks,
         fmt::format("Ranks, as threads of this process; not under mpirun [{}]", kDefaultRanks))
      ->check(whole_number(1, 1024))
      ->type_name("N");
  app.add_option("--threads", raw.options.threads, "Threads of each rank")
      ->check(whole_number(1, 1024))
      ->type_name("COUNT")
      ->capture_default_str();
  app.add_option("--device-memory", raw.memory,
                 "Budget of each rank, as 64MiB or 1GB; going over it is an error [unlimited]")
      ->type_name("SIZE");
  app.add_option("--link", raw.link,
                 "Emulate a network between the ranks: bandwidth=1GB/s,latency=20us, or one of the "
                 "two")
      ->type_name("LINK");
  app.add_option("--comm-timeout", raw.options.comm_timeout,
                 "Seconds until a rank that waits in vain for the others ends the run; 0: never")
      ->check(whole_number(0, 1'000'000'000))
      ->type_name("SECONDS")
      ->capture_default_str();
  app.add_flag("--check-collectives", raw.check_collectives,
               fmt::format("Before data moves, check that all ranks call the same collective{}",
                           kCheckCollectives ? " [on in this build]" : ""));
  app.add_flag("--no-check-collectives", raw.no_check_collectives, "Do not");
  name_group(app, "Where it runs");
}

void add_what_it_tells(CLI::App& app, Raw& raw) {
  RunOptions& options = raw.options;
  app.add_option("--out", options.out,
                 "The run folder; replaces an earlier run in it, and nothing else")
      ->type_name("FOLDER")
      ->capture_default_str();
  app.add_option("--log-level", raw.log_level, "off, steps, or events")
      ->check(CLI::IsMember({"off", "steps", "events"}).description(""))
      ->type_name("LEVEL")
      ->capture_default_str();
  app.add_option("--show", raw.show,
                 "Print transitions, comm, memory (comma between) as they happen")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(CLI::IsMember({"transitions", "comm", "memory"}).description(""))
      ->type_name("WHAT");
  app.add_flag("--json", options.json, "Print the result as JSON, and nothing else");
  app.add_flag("--plain", options.plain, "Print tables in ASCII");
  app.add_option("--break", raw.mistake,
                 "See a deliberate mistake caught: unregistered-head does not tell stage 3 that "
                 "the head uses the embedding")
      ->check(CLI::IsMember({"unregistered-head"}).description(""))
      ->type_name("MISTAKE");
  name_group(app, "What it tells");
}

void add_what_it_writes(CLI::App& app, Raw& raw) {
  app.add_option("--generate", raw.generate, "Let the model write so many bytes of text")
      ->check(whole_number(1, 1'000'000'000))
      ->type_name("BYTES");
  app.add_option("--generate-every", raw.generate_every,
                 "Steps between two texts; 0: after the last step only [0]")
      ->check(whole_number(0, 1'000'000'000))
      ->type_name("STEPS");
  app.add_option("--prompt", raw.prompt, "What the text begins with [a newline, not printed]")
      ->type_name("TEXT");
  app.add_option("--temperature", raw.temperature,
                 fmt::format("Below 1 the model dares less, above 1 more; 0: the most likely byte "
                             "every time [{}]",
                             Sampling{}.temperature))
      ->type_name("NUMBER");
  app.add_option("--top-k", raw.top_k,
                 "Draw from so many of the most likely bytes; 0: from all [0]")
      ->check(whole_number(0, 1'000'000'000))
      ->type_name("COUNT");
  name_group(app, "What it writes");
}

// A number as JSON would read it; anything else stays a text, which a number setting then refuses.
nlohmann::json as_setting(const std::string& text) {
  nlohmann::json value = nlohmann::json::parse(text, nullptr, false);
  return value.is_number() ? value : nlohmann::json(text);
}

std::vector<Given> settings_of(const Raw& raw) {
  struct Flag {
    const std::string& text;
    std::string_view key, flag;
  };
  std::vector<Given> given;
  for (const auto& [text, key, flag] :
       {Flag{raw.stage, "zero_optimization.stage", "--stage"},
        Flag{raw.micro_batch, "train_micro_batch_size_per_gpu", "--micro-batch"},
        Flag{raw.accumulation, "gradient_accumulation_steps", "--gradient-accumulation-steps"},
        Flag{raw.learning_rate, "optimizer.params.lr", "--learning-rate"},
        Flag{raw.bucket, "zero_optimization.reduce_bucket_size", "--reduce-bucket-size"},
        Flag{raw.prefetch, "zero_optimization.stage3_prefetch_bucket_size",
             "--prefetch-bucket-size"},
        Flag{raw.persistence, "zero_optimization.stage3_param_persistence_threshold",
             "--param-persistence-threshold"},
        Flag{raw.live, "zero_optimization.stage3_max_live_parameters", "--max-live-parameters"},
        Flag{raw.reuse, "zero_optimization.stage3_max_reuse_distance", "--max-reuse-distance"}}) {
    if (!text.empty()) given.push_back({std::string(key), as_setting(text), std::string(flag)});
  }
  if (raw.overlap || raw.no_overlap) {
    given.push_back({"zero_optimization.overlap_comm", raw.overlap,
                     raw.overlap ? "--overlap-comm" : "--no-overlap-comm"});
  }
  if (raw.checkpointing) {
    given.push_back({"activation_checkpointing.enabled", true, "--activation-checkpointing"});
  }
  return given;
}

[[noreturn]] void refuse(const std::string& what, const std::string& way_out) {
  throw Error(Code::usage, what, way_out);
}

void refuse_repeated_stages(const std::vector<int>& stages) {
  for (const int stage : stages) {
    if (std::count(stages.begin(), stages.end(), stage) > 1) {
      refuse(fmt::format("--stages names stage {} twice", stage), "name each stage once");
    }
  }
}

double temperature_in(const std::string& text) {
  double value = 0;
  const char* end = text.data() + text.size();
  const auto [stopped, failed] = std::from_chars(text.data(), end, value);
  if (failed != std::errc() || stopped != end || !std::isfinite(value) || value < 0) {
    refuse(fmt::format("--temperature {} is not a number from 0", text),
           "0.8 is a good start; 0 takes the most likely byte every time");
  }
  return value;
}

void refuse_without_generate(const Raw& raw) {
  for (const auto& [given, flag] : {std::pair{raw.generate_every.has_value(), "--generate-every"},
                                    {raw.prompt.has_value(), "--prompt"},
                                    {raw.temperature.has_value(), "--temperature"},
                                    {raw.top_k.has_value(), "--top-k"}}) {
    if (!given) continue;
    refuse(fmt::format("{} without --generate: no text is generated that it could be about", flag),
           "say with --generate how many bytes of text you want");
  }
}

std::optional<Sampling> sampling_of(const Raw& raw) {
  if (!raw.generate) {
    refuse_without_generate(raw);
    return std::nullopt;
  }
  Sampling sampling;
  sampling.count = *raw.generate;
  sampling.seed = raw.options.seed;
  sampling.prompt = raw.prompt.value_or("");
  sampling.top_k = raw.top_k.value_or(0);
  if (raw.temperature) sampling.temperature = temperature_in(*raw.temperature);
  return sampling;
}

RunOptions finish(Raw& raw, bool under_mpirun) {
  RunOptions& options = raw.options;
  if (raw.ranks > 0) {
    if (under_mpirun) {
      refuse(
          fmt::format("-n {} under mpirun: mpirun has decided how many ranks there are", raw.ranks),
          "leave -n out, or start without mpirun to run the ranks as threads");
    }
    options.ranks = raw.ranks;
  }
  refuse_repeated_stages(options.stages);
  if (raw.overlap && raw.no_overlap) {
    refuse("--overlap-comm contradicts --no-overlap-comm", "leave one of them out");
  }
  if (raw.check_collectives && raw.no_check_collectives) {
    refuse("--check-collectives contradicts --no-check-collectives", "leave one of them out");
  }
  options.check_collectives =
      raw.check_collectives || (kCheckCollectives && !raw.no_check_collectives);
  options.settings = settings_of(raw);
  options.generate = sampling_of(raw);
  options.generate_every = raw.generate_every.value_or(0);
  if (!raw.data.empty()) options.data = raw.data;
  if (!raw.config.empty()) options.config = raw.config;
  if (!raw.mistake.empty()) options.deliberate_mistake = raw.mistake;
  if (!raw.memory.empty()) options.device_memory = parse_byte_size(raw.memory, "--device-memory");
  if (!raw.link.empty()) options.link = parse_link(raw.link);
  options.log_level = raw.log_level == "off"     ? LogLevel::off
                      : raw.log_level == "steps" ? LogLevel::steps
                                                 : LogLevel::events;
  for (const std::string& what : raw.show) {
    options.show.transitions |= what == "transitions";
    options.show.comm |= what == "comm";
    options.show.memory |= what == "memory";
  }
  return options;
}

std::vector<std::string> flags_of(const CLI::App& app) {
  std::vector<std::string> flags;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) flags.push_back("--" + name);
    for (const std::string& name : option->get_snames()) flags.push_back("-" + name);
  }
  return flags;
}

void refuse_unknown(const CLI::App& command) {
  const std::vector<std::string> left = command.remaining();
  if (left.empty()) return;
  const std::string flag = left.front().substr(0, left.front().find('='));
  refuse(fmt::format("{} {} is not known{}", command.get_name(), flag,
                     did_you_mean(flag, flags_of(command))),
         fmt::format("zerolab {} --help lists every flag", command.get_name()));
}

}  // namespace

Invocation parse_command_line(const std::vector<std::string>& arguments, bool under_mpirun) {
  const std::vector<std::string> names{"train", "compare", "doctor"};
  if (!arguments.empty() && arguments[0].rfind('-', 0) != 0 &&
      std::find(names.begin(), names.end(), arguments[0]) == names.end()) {
    refuse(fmt::format("{} is not a subcommand{}", arguments[0], did_you_mean(arguments[0], names)),
           "zerolab --help lists them: train, compare, doctor");
  }

  CLI::App app{std::string(kAbout), "zerolab"};
  app.set_version_flag("--version", std::string("zerolab ") + version());
  app.require_subcommand(1);
  app.footer(std::string(kFooter));
  app.get_formatter()->column_width(38);
  app.get_formatter()->label("OPTIONS", "FLAGS");

  Raw train, compare, doctor;
  train.options.command = Command::train;
  train.options.out = "runs/train";
  compare.options.command = Command::compare;
  compare.options.out = "runs/compare";
  doctor.options.command = Command::doctor;
  CLI::App* train_app = app.add_subcommand("train", "Train a model with one stage");
  CLI::App* compare_app =
      app.add_subcommand("compare", "Train with several stages side by side and check the bits");
  CLI::App* doctor_app = app.add_subcommand("doctor", "Say what this machine can do");
  for (const auto& [subcommand, raw] :
       {std::pair{train_app, &train}, std::pair{compare_app, &compare}}) {
    add_what_to_train(*subcommand, *raw);
    add_settings(*subcommand, *raw);
    if (subcommand == train_app) add_what_it_writes(*subcommand, *raw);
    add_where_it_runs(*subcommand, *raw);
    add_what_it_tells(*subcommand, *raw);
    subcommand->footer(std::string(kFooter));
  }
  doctor_app->add_flag("--plain", doctor.options.plain, "Print in ASCII");
  for (CLI::App* subcommand : {train_app, compare_app, doctor_app}) subcommand->allow_extras();

  try {
    std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());
    app.parse(std::move(reversed));
  } catch (const CLI::ParseError& error) {
    std::ostringstream out, err;
    if (app.exit(error, out, err) == 0) return {{}, out.str()};
    for (const CLI::App* subcommand : app.get_subcommands()) refuse_unknown(*subcommand);
    refuse(error.what(), "zerolab --help, or zerolab <subcommand> --help");
  }
  CLI::App* chosen = app.get_subcommands().front();
  refuse_unknown(*chosen);
  Raw& raw = chosen == train_app ? train : chosen == compare_app ? compare : doctor;
  return {finish(raw, under_mpirun), std::nullopt};
}

}  // namespace zerolab
