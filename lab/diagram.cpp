#include "lab/diagram.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>
#include <optional>

#include "lab/generated_text.hpp"
#include "lab/output_file.hpp"
#include "stages/base/error.hpp"
#include "stages/base/nearest.hpp"
#include "visualize/diagram/modules.hpp"
#include "visualize/diagram/partition.hpp"
#include "visualize/diagram/render.hpp"
#include "visualize/diagram/sequence.hpp"
#include "visualize/diagram/states.hpp"

namespace zerolab {
namespace {

struct Wanted {
  std::string folder, of = "states";
  std::optional<std::string> parameter, module, diff, out;
  std::optional<int> stage;
  std::optional<log::Count> step;
  log::Count rank = 0;
  bool spec = false, no_times = false;
};

using Folders = std::vector<log::RunFolder>;

constexpr std::array kKinds{"states",    "parameters", "gradients",
                            "partition", "modules",    "sequence"};

[[noreturn]] void refuse(const std::string& what, const std::string& way_out) {
  throw Error(Code::usage, printable(what), way_out);
}

Folders runs_of(const Wanted& wanted, const std::string& folder) {
  Folders runs;
  for (const std::filesystem::path& path : log::runs_in(folder)) {
    runs.push_back(log::read_run_folder(path));
  }
  if (!wanted.stage || (runs.size() == 1 && folder == wanted.diff)) return runs;
  std::erase_if(runs, [&](const log::RunFolder& run) {
    return run.run.stage != static_cast<log::Count>(*wanted.stage);
  });
  if (runs.empty()) {
    refuse(fmt::format("diagram --stage {}: {} has no run of that stage", *wanted.stage, folder),
           "leave --stage out, or name a stage that was run");
  }
  return runs;
}

/// Of parameters or modules.
template <typename Named>
void expect_name(const std::string& flag, const std::string& name,
                 const std::vector<Named>& known) {
  std::vector<std::string> names;
  names.reserve(known.size());
  for (const Named& each : known) names.push_back(each.name);
  if (std::find(names.begin(), names.end(), name) != names.end()) return;
  refuse(fmt::format("diagram {} {}: the run has no such {}{}", flag, name, flag.substr(2),
                     did_you_mean(name, names)),
         fmt::format("run.json lists the {}s of the run", flag.substr(2)));
}

diagram::Selection selection_of(const Wanted& wanted, const log::Run& run) {
  if (wanted.parameter) {
    expect_name("--parameter", *wanted.parameter, run.parameters);
    return std::set{*wanted.parameter};
  }
  if (wanted.module) {
    expect_name("--module", *wanted.module, run.modules);
    return diagram::parameters_of(run, *wanted.module);
  }
  return std::nullopt;
}

std::string states_of(const Wanted& wanted, const Folders& runs) {
  const diagram::StatesOptions options{.parameters = wanted.of != "gradients",
                                       .gradients = wanted.of != "parameters",
                                       .spec = wanted.spec,
                                       .times = !wanted.no_times};
  std::vector<diagram::Observed> observed;
  for (const log::RunFolder& run : runs) {
    observed.push_back(diagram::observe(run, selection_of(wanted, run.run)));
  }
  if (!wanted.diff) return diagram::states_dot(observed, options);
  const Folders others = runs_of(wanted, *wanted.diff);
  if (runs.size() != 1 || others.size() != 1) {
    refuse("diagram --diff compares one run with one other, and a comparison has several",
           "say which with --stage, or name its folder, as runs/compare/stage3");
  }
  return diagram::states_diff_dot(
      observed[0], diagram::observe(others[0], selection_of(wanted, others[0].run)), options);
}

std::string dot_of(const Wanted& wanted) {
  const Folders runs = runs_of(wanted, wanted.folder);
  if (wanted.of == "modules") return diagram::modules_dot(runs[0].run);
  if (wanted.of == "partition") return diagram::partition_dot(runs);
  if (wanted.of == "sequence") {
    return diagram::sequence_dot(
        runs, {.rank = wanted.rank, .step = wanted.step, .times = !wanted.no_times});
  }
  return states_of(wanted, runs);
}

std::string format_of(const Wanted& wanted) {
  if (!wanted.out) return "dot";
  const std::string extension = std::filesystem::path(*wanted.out).extension().string();
  std::string format = extension.empty() ? "" : extension.substr(1);
  if (std::find(diagram::kFormats.begin(), diagram::kFormats.end(), format) !=
      diagram::kFormats.end()) {
    return format;
  }
  refuse(fmt::format("diagram -o {}: the end of its name does not say which format", *wanted.out),
         fmt::format("end it in one of .{}", fmt::join(diagram::kFormats, ", .")));
}

void refuse_contradictions(const Wanted& wanted) {
  const bool states = wanted.of != "partition" && wanted.of != "modules" && wanted.of != "sequence";
  const auto only_for = [&](bool given, const char* flag, bool fits, const char* kind) {
    if (!given || fits) return;
    refuse(fmt::format("diagram --of {} has no use for {}", wanted.of, flag),
           fmt::format("leave {} out, or draw {}", flag, kind));
  };
  for (const auto& [given, flag] :
       {std::pair{wanted.parameter.has_value(), "--parameter"},
        std::pair{wanted.module.has_value(), "--module"},
        std::pair{wanted.diff.has_value(), "--diff"}, std::pair{wanted.spec, "--spec"}}) {
    only_for(given, flag, states, "--of states");
  }
  const bool sequence = wanted.of == "sequence";
  only_for(wanted.no_times, "--no-times", states || sequence, "--of states or sequence");
  only_for(wanted.step.has_value(), "--step", sequence, "--of sequence");
  only_for(wanted.rank != 0, "--rank", sequence, "--of sequence");
}

int run_diagram(const Wanted& wanted) {
  refuse_contradictions(wanted);
  const std::string format = format_of(wanted);
  try {
    const std::string picture = diagram::render(dot_of(wanted), format);
    if (wanted.out) {
      write_output(*wanted.out, picture);
    } else {
      std::cout << picture << std::flush;
    }
  } catch (const log::Unreadable& unreadable) {
    throw Error(Code::run_folder, printable(unreadable.what()), unreadable.way_out);
  } catch (const diagram::Undrawable& undrawable) {
    refuse(undrawable.what(), "choose another format: .svg, or .dot, which other programs draw");
  }
  return 0;
}

}  // namespace

Subcommand diagram_subcommand() {
  const auto declare = [](CLI::App& app) -> std::function<int()> {
    const auto wanted = std::make_shared<Wanted>();
    app.add_option("RUN", wanted->folder, "The run folder, of train or compare")->required();
    app.add_option("--of", wanted->of, "What to draw (states)")
        ->check(
            CLI::IsMember(std::vector<std::string>(kKinds.begin(), kKinds.end())).description(""))
        ->type_name("KIND");
    app.add_option("-o", wanted->out, "Where to: .svg, .png, .pdf or .dot")->type_name("FILE");
    app.add_option("--parameter", wanted->parameter, "States of this parameter only")
        ->type_name("NAME");
    app.add_option("--module", wanted->module, "States of what is in this module only")
        ->type_name("NAME")
        ->excludes("--parameter");
    app.add_option("--stage", wanted->stage, "This stage of a comparison only")->type_name("K");
    app.add_flag("--spec", wanted->spec, "What the stage declares and the run never did, in grey");
    app.add_option("--diff", wanted->diff, "What this other run does, and what only one does")
        ->type_name("OTHER");
    app.add_flag("--no-times", wanted->no_times, "No times, which differ from run to run");
    app.add_option("--step", wanted->step, "Of sequence: this step (the last whole one)")
        ->type_name("STEP");
    app.add_option("--rank", wanted->rank, "Of sequence: this rank (0)")->type_name("RANK");
    return [wanted] { return run_diagram(*wanted); };
  };
  return {"diagram", "Draw a run: its states, partitions, modules, or one step", declare, false};
}

}  // namespace zerolab
