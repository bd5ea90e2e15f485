#include "lab/options.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <map>
#include <sstream>
#include <tuple>

#include "lab/byte_size.hpp"
#include "lab/failures/mistakes/mistake.hpp"
#include "lab/flags.hpp"
#include "lab/link_option.hpp"
#include "lab/subcommands.hpp"
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
  zerolab train --steps 300 --save ck             what it has learned, to go on from
  zerolab generate --resume ck                    what the model has learned to write
  zerolab merge ck -o model.safetensors           its weights, for other libraries
  zerolab fail --list                             documented failures, on demand

Exit codes:
  0 done                     3 out of memory      6 checkpoint
  1 internal                 4 parameter state    7 communication
  2 usage or configuration   5 numerics           128 + n: ended by signal n
zerolab explain ZL301 explains an error code, docs/configuration.md has each setting.)";

// A number as JSON would read it; anything else stays a text, which a number setting then refuses.
nlohmann::json as_setting(const std::string& text) {
  nlohmann::json value = nlohmann::json::parse(text, nullptr, false);
  return value.is_number() ? value : nlohmann::json(text);
}

std::vector<Given> settings_of(const RawFlags& raw) {
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
  if (raw.bf16) given.push_back({"bf16.enabled", true, "--bf16"});
  if (raw.fp16) given.push_back({"fp16.enabled", true, "--fp16"});
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

void refuse_without_generate(const RawFlags& raw) {
  for (const auto& [given, flag] : {std::pair{raw.generate_every.has_value(), "--generate-every"},
                                    {raw.prompt.has_value(), "--prompt"},
                                    {raw.temperature.has_value(), "--temperature"},
                                    {raw.top_k.has_value(), "--top-k"}}) {
    if (!given) continue;
    refuse(fmt::format("{} without --generate: no text is generated that it could be about", flag),
           "say with --generate how many bytes of text you want");
  }
}

std::optional<Sampling> sampling_of(const RawFlags& raw) {
  if (!raw.generate && raw.options.command != Command::generate) {
    refuse_without_generate(raw);
    return std::nullopt;
  }
  Sampling sampling;
  sampling.count = raw.generate.value_or(kDefaultBytes);
  sampling.seed = raw.options.seed.value_or(kDefaultSeed);
  sampling.prompt = raw.prompt.value_or("");
  sampling.top_k = raw.top_k.value_or(0);
  if (raw.temperature) sampling.temperature = temperature_in(*raw.temperature);
  return sampling;
}

Saving saving_of(const RawFlags& raw) {
  Saving saving;
  if (!raw.save.empty()) saving.folder = raw.save;
  if (!raw.save_model.empty()) saving.weights_file = raw.save_model;
  for (const auto& [given, flag] : {std::pair{raw.save_every.has_value(), "--save-every"},
                                    {raw.keep.has_value(), "--keep"},
                                    {raw.resume == kAuto, "--resume auto"}}) {
    if (!given || saving.folder) continue;
    refuse(fmt::format("{} without --save: there is no folder of checkpoints", flag),
           "name one with --save");
  }
  saving.every = raw.save_every.value_or(0);
  saving.keep = raw.keep.value_or(0);
  return saving;
}

RunOptions finish(RawFlags& raw, bool under_mpirun) {
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
  if (options.json && !raw.show.empty()) {
    refuse("--show contradicts --json, which prints the result and nothing else",
           "leave one of them out; the event logs in the run folder have all that is shown");
  }
  options.settings = settings_of(raw);
  options.generate = sampling_of(raw);
  options.generate_every = raw.generate_every.value_or(0);
  options.saving = saving_of(raw);
  if (!raw.resume.empty()) options.resume = raw.resume;
  if (!raw.weights.empty()) options.weights = raw.weights;
  if (!raw.data.empty()) options.data = raw.data;
  if (!raw.config.empty()) options.config = raw.config;
  for (const auto& [name, flag, chosen] : {std::tuple{raw.broken, "--break", &options.broken},
                                           {raw.mended, "--mend", &options.mended}}) {
    if (!name.empty()) *chosen = find_mistake(name, flag).name;
  }
  if (options.broken && find_mistake(*options.broken, "--break").save && !options.saving.folder) {
    refuse(fmt::format("--break {} without --save: it is made while saving", *options.broken),
           "name a folder of checkpoints with --save, and what it does can be seen");
  }
  if (options.broken && options.mended) {
    refuse("--break contradicts --mend", "leave one of them out");
  }
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

/// A command with ranks, and what its flags fill in.
struct Ranked {
  std::string_view name, about;
  RawFlags raw = {};
};

std::array<Ranked, 4> commands_with_ranks() {
  std::array<Ranked, 4> commands{
      Ranked{"train", "Train a model with one stage"},
      Ranked{"compare", "Train with several stages side by side and check the bits"},
      Ranked{"import", "Train, beginning with the weights of a safetensors file"},
      Ranked{"generate", "Let a trained model write text"}};
  constexpr std::array kCommands{Command::train, Command::compare, Command::import,
                                 Command::generate};
  for (std::size_t i = 0; i < commands.size(); ++i) {
    commands[i].raw.options.command = kCommands[i];
    commands[i].raw.options.out = fmt::format("runs/{}", commands[i].name);
  }
  return commands;
}

}  // namespace

Invocation parse_command_line(const std::vector<std::string>& arguments, bool under_mpirun) {
  const std::vector<Subcommand> without_ranks = subcommands_without_ranks();
  std::array<Ranked, 4> with_ranks = commands_with_ranks();
  std::vector<std::string> names;
  names.reserve(with_ranks.size() + without_ranks.size());
  for (const Ranked& command : with_ranks) names.emplace_back(command.name);
  for (const Subcommand& subcommand : without_ranks) names.push_back(subcommand.name);
  if (!arguments.empty() && arguments[0].rfind('-', 0) != 0 &&
      std::find(names.begin(), names.end(), arguments[0]) == names.end()) {
    refuse(fmt::format("{} is not a subcommand{}", arguments[0], did_you_mean(arguments[0], names)),
           fmt::format("zerolab --help lists them: {}", fmt::join(names, ", ")));
  }

  CLI::App app{std::string(kAbout), "zerolab"};
  app.set_version_flag("--version", std::string("zerolab ") + version());
  app.require_subcommand(1);
  app.footer(std::string(kFooter));
  app.get_formatter()->column_width(38);
  app.get_formatter()->label("OPTIONS", "FLAGS");

  for (Ranked& command : with_ranks) {
    CLI::App* declared = app.add_subcommand(std::string(command.name), std::string(command.about));
    add_flags(*declared, command.raw);
    declared->footer(std::string(kFooter));
  }
  std::map<std::string, std::function<int()>> alone;
  for (const Subcommand& subcommand : without_ranks) {
    CLI::App* declared = app.add_subcommand(subcommand.name, subcommand.about);
    alone[subcommand.name] = subcommand.declare(*declared);
  }
  for (CLI::App* subcommand : app.get_subcommands([](const CLI::App*) { return true; })) {
    subcommand->allow_extras();
  }

  try {
    std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());
    app.parse(std::move(reversed));
  } catch (const CLI::ParseError& error) {
    std::ostringstream out, err;
    if (app.exit(error, out, err) == 0) return {{}, out.str(), {}};
    for (const CLI::App* subcommand : app.get_subcommands()) refuse_unknown(*subcommand);
    refuse(error.what(), "zerolab --help, or zerolab <subcommand> --help");
  }
  const CLI::App* chosen = app.get_subcommands().front();
  refuse_unknown(*chosen);
  for (Ranked& command : with_ranks) {
    if (command.name != chosen->get_name()) continue;
    return {finish(command.raw, under_mpirun), std::nullopt, {}};
  }
  const auto found =
      std::find_if(without_ranks.begin(), without_ranks.end(),
                   [&](const auto& each) { return each.name == chosen->get_name(); });
  if (under_mpirun && !found->under_mpirun) {
    refuse(fmt::format("{} under mpirun: it needs no ranks", found->name),
           "start it without mpirun");
  }
  return {{}, std::nullopt, alone.at(found->name)};
}

}  // namespace zerolab
