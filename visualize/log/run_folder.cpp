#include "visualize/log/run_folder.hpp"

#include <set>

#include "visualize/log/json_file.hpp"

namespace zerolab::log {
namespace fs = std::filesystem;
namespace {

constexpr Count kMostRanks = 65'536;
constexpr const char* kHowToMakeOne = "name a folder that `zerolab train` or `compare` has written";

void refuse_twice(const std::string& kind, const std::string& name, std::set<std::string>& seen) {
  if (!seen.insert(name).second) {
    throw Mistake(fmt::format("has two {}s that are called {}", kind, shown(name)));
  }
}

std::vector<Parameter> parameters_of(const Fields& run) {
  std::vector<Parameter> result;
  std::set<std::string> seen;
  for (const Fields& each : run.objects("parameters")) {
    result.push_back({each.name("name"), each.count("numel"), each.flag("requires_grad"),
                      each.flag("persistent")});
    refuse_twice("parameter", result.back().name, seen);
  }
  return result;
}

std::vector<Module> modules_of(const Fields& run) {
  std::vector<Module> result;
  std::set<std::string> seen;
  for (const Fields& each : run.objects("modules")) {
    result.push_back({each.name("name"), each.text("class"), each.flag("leaf"),
                      each.names("children"), each.names("parameters"), each.names("external")});
    refuse_twice("module", result.back().name, seen);
  }
  return result;
}

Run run_of(const Fields& json) {
  Run run{.stage = json.count("stage"),
          .world_size = json.count("world_size"),
          .device_memory = json.count_or_null("device_memory"),
          .check_collectives = json.flag("check_collectives"),
          .resumed = {},
          .parameters = parameters_of(json),
          .modules = modules_of(json),
          .moves = {},
          .gradient_moves = {}};
  if (run.stage > 3) throw Mistake(fmt::format("stage is {}; 0 to 3 is expected", run.stage));
  if (run.world_size < 1 || run.world_size > kMostRanks) {
    throw Mistake(fmt::format("world_size is {}; 1 to {} is expected", run.world_size, kMostRanks));
  }
  if (const auto resumed = json.object_if_any("resumed")) {
    run.resumed = {resumed->name("checkpoint"), resumed->count("step")};
  }
  const Fields machine = json.object("state_machine");
  for (const Fields& move : machine.objects("parameter")) {
    run.moves.push_back(
        {move.word<Status>("from"), move.word<Status>("to"), move.word<Cause>("cause")});
  }
  for (const Fields& move : machine.objects("gradient")) {
    run.gradient_moves.push_back(
        {move.word<GradientStatus>("from"), move.word<GradientStatus>("to")});
  }
  return run;
}

Usage usage_of(const Fields& json) {
  Usage usage{};
  for (std::size_t i = 0; i < usage.size(); ++i) {
    usage[i] = json.count(name_of(static_cast<Category>(i)).data());
  }
  return usage;
}

TrafficByOp traffic_of(const Fields& json) {
  TrafficByOp result;
  for (const std::string& name : json.keys()) {
    const auto op = named<Op>(name);
    if (!op) throw Mistake(fmt::format("has traffic of {}, which is no collective", shown(name)));
    const Fields counted = json.object(name.c_str());
    result[*op] = {counted.count("calls"), counted.count("elements"), counted.count("bytes_sent")};
  }
  return result;
}

Summary summary_of(const Fields& json) {
  Summary summary;
  for (const Fields& step : json.objects("steps")) {
    summary.steps.push_back({step.number_or_null("loss"), step.number_or_null("grad_norm"),
                             step.flag("skipped"), step.text("param_hash")});
  }
  if (json.has("checkpoints")) {
    for (const Fields& each : json.objects("checkpoints")) {
      summary.checkpoints.push_back({each.count("step"), each.name("path"), each.count("bytes")});
    }
  }
  for (const Fields& rank : json.objects("memory")) {
    const Fields device = rank.object("device");
    summary.memory.push_back({usage_of(device.object("peak")),
                              usage_of(device.object("category_peak")),
                              usage_of(device.object("steady"))});
  }
  summary.comm = traffic_of(json.object("comm"));
  summary.validation_comm = traffic_of(json.object("validation_comm"));
  summary.generation_comm = traffic_of(json.object("generation_comm"));
  return summary;
}

}  // namespace

RunFolder read_run_folder(const fs::path& folder) {
  if (!is_file(folder / "run.json")) {
    throw Unreadable(fmt::format("{} has no run.json", folder.string()), kHowToMakeOne);
  }
  RunFolder result{folder, read_json_file(folder / "run.json", run_of), std::nullopt,
                   read_failure(folder)};
  if (is_file(folder / "summary.json")) {
    result.summary = read_json_file(folder / "summary.json", summary_of);
    if (result.summary->memory.size() != result.run.world_size) {
      throw Unreadable(fmt::format("{} tells the memory of {} ranks, run.json has {}",
                                   (folder / "summary.json").string(),
                                   result.summary->memory.size(), result.run.world_size),
                       "the two files are of different runs: make the run again");
    }
  }
  return result;
}

std::optional<Failure> read_failure(const fs::path& folder) {
  if (!is_file(folder / "error.json")) return std::nullopt;
  return read_json_file(folder / "error.json", [](const Fields& json) {
    return Failure{json.text("code"), json.count_or_null("rank"), json.text("message")};
  });
}

std::vector<fs::path> runs_in(const fs::path& folder) {
  std::error_code failed;
  if (!fs::is_directory(folder, failed)) {
    throw Unreadable(fmt::format("{} is {}", folder.string(),
                                 fs::exists(folder, failed) ? "not a folder" : "not there"),
                     kHowToMakeOne);
  }
  if (is_file(folder / "run.json")) return {folder};
  std::vector<fs::path> result;
  for (int stage = 0; stage <= 3; ++stage) {
    const fs::path run = folder / fmt::format("stage{}", stage);
    if (is_file(run / "run.json")) result.push_back(run);
  }
  if (!result.empty()) return result;
  throw Unreadable(fmt::format("{} is no run folder: there is no run.json in it", folder.string()),
                   kHowToMakeOne);
}

std::string event_file_name(Count rank) { return fmt::format("rank{}.events.jsonl", rank); }

}  // namespace zerolab::log
