#include "lab/checkpoint_command.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "lab/error_report.hpp"
#include "lab/progress.hpp"
#include "lab/table.hpp"
#include "lab/terminal.hpp"
#include "stages/base/error.hpp"
#include "stages/base/nearest.hpp"
#include "stages/checkpoint/check.hpp"
#include "stages/memory/usage.hpp"

namespace zerolab {
namespace {

using Json = nlohmann::ordered_json;

struct Flags {
  std::string action, checkpoint;
  bool json = false, plain = false;
};

/// A part of a parameter, and the rank whose shard has it.
struct Part {
  std::size_t rank;
  Range range;
};

/// By parameter, in the order of their elements.
std::vector<std::vector<Part>> parts_of(const Manifest& manifest) {
  std::vector<std::vector<Part>> parts(manifest.parameters.size());
  for (std::size_t rank = 0; rank < manifest.shards.size(); ++rank) {
    for (const SavedSlice& slice : manifest.shards[rank].slices) {
      parts[slice.parameter].push_back({rank, slice.range});
    }
  }
  for (std::vector<Part>& each : parts) {
    std::sort(each.begin(), each.end(),
              [](const Part& a, const Part& b) { return a.range.begin < b.range.begin; });
  }
  return parts;
}

std::vector<std::string> states_of(const Manifest& manifest, const SavedParameter& parameter) {
  std::vector<std::string> states = manifest.states();
  std::erase_if(states, [&](const std::string& state) { return !manifest.has(state, parameter); });
  return states;
}

Index bytes_of(const Manifest& manifest, const SavedParameter& parameter) {
  Index bytes = 0;
  for (const std::string& state : states_of(manifest, parameter)) {
    bytes += numel(parameter.shape) * size_of(manifest.dtype_of(state));
  }
  return bytes;
}

// "master, exp_avg, exp_avg_sq fp32; weights bf16".
std::string states_text(const Manifest& manifest, const SavedParameter& parameter) {
  std::vector<std::string> single, half;
  for (const std::string& state : states_of(manifest, parameter)) {
    (manifest.dtype_of(state) == Dtype::fp32 ? single : half).push_back(state);
  }
  std::string text;
  if (!single.empty()) text = fmt::format("{} fp32", fmt::join(single, ", "));
  if (!half.empty()) {
    text += fmt::format("{}{} {}", text.empty() ? "" : "; ", fmt::join(half, ", "),
                        name_of(manifest.dtype));
  }
  return parameter.requires_grad ? text : text + ", frozen";
}

std::string ranks_text(const std::vector<Part>& parts) {
  constexpr std::size_t kMost = 4;
  if (parts.empty()) return "-";
  std::vector<std::string> texts;
  for (const Part& part : parts) {
    if (texts.size() == kMost) break;
    texts.push_back(fmt::format("{}: {}..{}", part.rank, part.range.begin, part.range.end));
  }
  const std::string more =
      parts.size() > kMost ? fmt::format(", and {} more", parts.size() - kMost) : "";
  return fmt::format("{}{}", fmt::join(texts, ", "), more);
}

std::string table_of(const Manifest& manifest, Style style) {
  using Align = Table::Align;
  Table table{{{"tensor", Align::left},
               {"shape", Align::left},
               {"states", Align::left},
               {"bytes", Align::right},
               {"elements of each rank", Align::left}},
              {}};
  const std::vector<std::vector<Part>> parts = parts_of(manifest);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const SavedParameter& parameter = manifest.parameters[i];
    table.rows.push_back({parameter.name, to_string(parameter.shape),
                          states_text(manifest, parameter),
                          human_bytes(bytes_of(manifest, parameter)), ranks_text(parts[i])});
  }
  return draw_table(table, style);
}

std::string model_of(const Manifest& manifest) {
  const Json model = manifest.run.is_object() ? manifest.run.value("model", Json()) : Json();
  const Json name = model.is_object() ? model.value("name", Json()) : Json();
  return name.is_string() ? name.get<std::string>() : "unknown";
}

Index elements_of(const Manifest& manifest) {
  Index elements = 0;
  for (const SavedParameter& each : manifest.parameters) elements += numel(each.shape);
  return elements;
}

std::string heading_of(const Checkpoint& checkpoint) {
  const Manifest& manifest = checkpoint.manifest();
  const TrainingProgress& progress = manifest.progress;
  const Index skipped = progress.steps_done - progress.updates_done;
  std::string text = fmt::format(
      "checkpoint {}, tag {}\n"
      "model      {}, {} parameters, weights in {}\n"
      "saved      after step {}{}, in stage {} on {} rank{}\n"
      "optimizer  {}\n",
      checkpoint.folder().string(), manifest.tag, model_of(manifest),
      thousands(elements_of(manifest)), name_of(manifest.dtype), progress.steps_done,
      skipped == 0 ? "" : fmt::format(" ({} skipped)", skipped), manifest.stage,
      manifest.world_size(), manifest.world_size() == 1 ? "" : "s",
      manifest.moments.empty() ? "keeps nothing"
                               : fmt::format("keeps {}", fmt::join(manifest.moments, ", ")));
  if (manifest.dtype == Dtype::fp16) {
    text += fmt::format("loss scale {}\n", manifest.progress.scaler.scale);
  }
  for (const auto& [alias, name] : manifest.tied)
    text += fmt::format("tied       {} is {}\n", alias, name);
  return text;
}

Json to_json(const Checkpoint& checkpoint) {
  const Manifest& manifest = checkpoint.manifest();
  const std::vector<std::vector<Part>> parts = parts_of(manifest);
  Json tensors = Json::array();
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const SavedParameter& parameter = manifest.parameters[i];
    Json states = Json::object();
    for (const std::string& state : states_of(manifest, parameter)) {
      states[state] = name_of(manifest.dtype_of(state));
    }
    Json ranks = Json::array();
    for (const Part& part : parts[i]) {
      ranks.push_back({{"rank", part.rank}, {"begin", part.range.begin}, {"end", part.range.end}});
    }
    tensors.push_back({{"name", parameter.name},
                       {"shape", parameter.shape},
                       {"requires_grad", parameter.requires_grad},
                       {"states", states},
                       {"bytes", bytes_of(manifest, parameter)},
                       {"ranks", ranks}});
  }
  return {{"checkpoint", checkpoint.folder().string()},
          {"tag", manifest.tag},
          {"model", model_of(manifest)},
          {"elements", elements_of(manifest)},
          {"dtype", name_of(manifest.dtype)},
          {"stage", manifest.stage},
          {"ranks", manifest.world_size()},
          {"steps", manifest.progress.steps_done},
          {"updates", manifest.progress.updates_done},
          {"moments", manifest.moments},
          {"loss_scale",
           manifest.dtype == Dtype::fp16 ? Json(manifest.progress.scaler.scale) : Json(nullptr)},
          {"tied", manifest.tied},
          {"bytes", checkpoint.bytes()},
          {"problems", checkpoint.problems_of_files()},
          {"tensors", tensors}};
}

int inspect(const Checkpoint& checkpoint, const Flags& flags) {
  if (flags.json) {
    std::cout << to_json(checkpoint).dump(2) << std::endl;
    return 0;
  }
  const Style style = choose_style(flags.plain, output_is_terminal());
  std::cout << heading_of(checkpoint);
  for (const std::string& problem : checkpoint.problems_of_files()) {
    std::cout << "warning    " << problem << '\n';
  }
  std::cout << '\n'
            << table_of(checkpoint.manifest(), style)
            << fmt::format("\n {} in {} files; zerolab checkpoint verify reads them\n",
                           human_bytes(checkpoint.bytes()), checkpoint.manifest().world_size())
            << std::flush;
  return 0;
}

std::optional<Error> error_of(const CheckReport& report, const Checkpoint& checkpoint) {
  if (report.problems.empty()) return std::nullopt;
  std::string what = report.problems.front();
  if (report.problems.size() > 1) {
    what = fmt::format("{} problems, of which the first: {}", report.problems.size(), what);
  }
  return Error(Code::checkpoint_damaged, what, checkpoint.way_out());
}

int verify(const Checkpoint& checkpoint, const Flags& flags) {
  const Style style = choose_style(flags.plain, output_is_terminal());
  ProgressLine line(std::cout, output_is_terminal() && !flags.json, "verify");
  const CheckReport report = check_checkpoint(
      checkpoint, [&](Index done, Index all) { line.show_bytes(done, all, style); });
  line.clear();
  const std::optional<Error> error = error_of(report, checkpoint);
  if (flags.json) {  // one value, with everything in it
    Json json{{"checkpoint", checkpoint.folder().string()},
              {"tag", checkpoint.manifest().tag},
              {"files", report.files},
              {"tensors", report.tensors},
              {"bytes", report.bytes},
              {"seconds", report.seconds},
              {"problems", report.problems}};
    if (error) json["error"] = error_json(*error, std::nullopt);
    std::cout << json.dump(2, ' ', false, Json::error_handler_t::replace) << std::endl;
    return error ? error->exit_status() : 0;
  }
  if (!error) {
    std::cout << fmt::format(
                     "{} is whole: manifest, {} files, {} tensors; {} read in {}, every checksum "
                     "as it was written\n",
                     checkpoint.folder().string(), report.files, report.tensors,
                     human_bytes(report.bytes), human_seconds(report.seconds))
              << std::flush;
    return 0;
  }
  if (report.problems.size() > 1) {  // else the error says it
    for (const std::string& problem : report.problems) std::cout << problem << '\n';
    std::cout << std::flush;
  }
  throw Error(*error);
}

int run_checkpoint(const Flags& flags) {
  const std::vector<std::string> actions{"inspect", "verify"};
  const auto refuse = [](const std::string& what) {
    throw Error(Code::usage, what,
                "zerolab checkpoint inspect CHECKPOINT shows what is in it; zerolab checkpoint "
                "verify CHECKPOINT reads it, to see whether it is whole");
  };
  if (flags.action.empty()) refuse("checkpoint needs to know what to do: inspect or verify");
  if (std::find(actions.begin(), actions.end(), flags.action) == actions.end()) {
    refuse(fmt::format("checkpoint {} is not known{}", flags.action,
                       did_you_mean(flags.action, actions)));
  }
  if (flags.checkpoint.empty()) {
    refuse(fmt::format("checkpoint {} needs to know of which checkpoint", flags.action));
  }
  const Checkpoint checkpoint = Checkpoint::open_manifest(flags.checkpoint);
  return flags.action == "inspect" ? inspect(checkpoint, flags) : verify(checkpoint, flags);
}

}  // namespace

Subcommand checkpoint_subcommand() {
  const auto declare = [](CLI::App& app) -> std::function<int()> {
    const auto flags = std::make_shared<Flags>();
    app.add_option("ACTION", flags->action, "inspect: what is in it; verify: whether it is whole");
    app.add_option("CHECKPOINT", flags->checkpoint,
                   "A folder of checkpoints, whose latest is meant, or FOLDER:TAG");
    app.add_flag("--json", flags->json, "Print the result as JSON, and nothing else");
    app.add_flag("--plain", flags->plain, "Print in ASCII");
    return [flags] { return run_checkpoint(*flags); };
  };
  return {"checkpoint", "Look into a checkpoint, or find out whether it is whole", declare, false};
}

}  // namespace zerolab
