#include "lab/print.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iostream>

#include "lab/compare_json.hpp"
#include "lab/compare_table.hpp"
#include "lab/generated_text.hpp"
#include "lab/settings_table.hpp"
#include "lab/terminal.hpp"
#include "lab/train_table.hpp"
#include "stages/base/json_text.hpp"
#include "stages/engine/summary.hpp"

namespace zerolab {
namespace {

// The highest stage, which has the most settings in use.
const Effective& highest(const std::vector<Effective>& stages) {
  return *std::max_element(stages.begin(), stages.end(), [](const auto& a, const auto& b) {
    return a.settings.zero.stage < b.settings.zero.stage;
  });
}

// One row for each setting; where stages differ it has all their values.
std::vector<SettingRow> joined_rows(const std::vector<Effective>& stages) {
  std::vector<SettingRow> rows = highest(stages).rows;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    std::string last = stages.front().rows[i].value;
    rows[i].value = last;
    for (const Effective& stage : stages) {
      if (stage.rows[i].value == last) continue;
      last = stage.rows[i].value;
      rows[i].value += ", " + last;
    }
  }
  return rows;
}

}  // namespace

Printer::Printer(const Communicator& communicator, const RunOptions& options)
    : speaks_(communicator.rank() == 0),
      json_(options.json),
      terminal_(output_is_terminal()),
      style_(choose_style(options.plain, terminal_)),
      ranks_(communicator.size()) {}

void Printer::heading(const Plan& plan, const std::vector<Effective>& effective,
                      const Communicator& communicator) {
  if (!speaks_ || json_) return;
  const Text& text = plan.data->text();
  const std::unique_ptr<Model> model = build_model_of(plan);
  const ParameterSet& parameters = model->parameters();
  const Index frozen = parameters.numel() - parameters.trainable_numel();
  fmt::print("model   {}, {} parameters{}\n", plan.model.name, thousands(parameters.numel()),
             frozen == 0 ? "" : fmt::format(", {} of them frozen", thousands(frozen)));
  fmt::print("text    {}, {} bytes, the last tenth held out\n", text.origin,
             thousands(text.size()));
  fmt::print("ranks   {}, {}\n", communicator.size(), communicator.description());
  if (plan.resumed) {
    const Manifest& manifest = plan.resumed->checkpoint.manifest();
    fmt::print("resumed {}, {} steps done in stage {} on {} ranks\n", plan.resumed->name(),
               manifest.progress.steps_done, manifest.stage, manifest.world_size());
  }
  if (plan.options.weights) fmt::print("weights {}\n", *plan.options.weights);
  if (communicator.size() == 1) fmt::print("note    one rank: nothing to partition\n");
  if (!text.note.empty()) fmt::print("note    {}\n", text.note);
  for (const std::string& warning : highest(effective).warnings) {
    fmt::print("warning {}\n", warning);
  }
  fmt::print("\n{}\n", settings_table(joined_rows(effective), style_));
  std::fflush(stdout);
}

std::function<void(Index, const StepResult&, const Ledger&)> Printer::steps(
    const Training& training) {
  if (!speaks_ || json_) return {};
  progress_ = std::make_unique<ProgressLine>(std::cout, terminal_,
                                             fmt::format("stage {}", training.settings.zero.stage));
  const Index tokens = ranks_ * training.settings.micro_batch *
                       training.settings.gradient_accumulation_steps * training.sequence_length;
  return [this, tokens, steps = training.steps](Index step, const StepResult& result,
                                                const Ledger& ledger) {
    if (result.skipped) {
      progress_->clear();
      fmt::print("step {} skipped: {}\n", step, result.why_skipped);
      std::fflush(stdout);
    }
    progress_->show({step, steps, result.loss, static_cast<double>(tokens) / result.seconds,
                     ledger.peak().total()});
  };
}

std::function<void(const Generation&)> Printer::texts(const Training& training) {
  if (!speaks_ || json_ || !training.generate) return {};
  return [this, steps = training.steps, sampling = *training.generate](const Generation& text) {
    if (text.step == steps) return;
    progress_->clear();
    std::cout << generated_text(text, sampling, style_) << std::endl;
  };
}

void Printer::end_of_steps() { progress_.reset(); }

void Printer::loaded(const LoadReport& report, const Resumed& resumed) {
  if (!speaks_ || json_) return;
  const Checkpoint& checkpoint = resumed.checkpoint;
  fmt::print("rank 0 has read {} from {} of {} shards, {} in all, in {}\n",
             human_bytes(report.bytes), report.files, checkpoint.manifest().world_size(),
             human_bytes(checkpoint.bytes()), human_seconds(report.seconds));
  std::fflush(stdout);
}

void Printer::warning(const std::string& text) {
  if (!speaks_ || json_ || text.empty()) return;
  progress_->clear();
  fmt::print("warning {}\n", text);
  std::fflush(stdout);
}

void Printer::text(const RankReport& report, const Training& training, const Plan& plan) {
  if (!speaks_) return;
  const Generation& text = report.generations.back();
  if (json_) {
    nlohmann::ordered_json json{{"checkpoint", plan.resumed->name()}, {"step", text.step}};
    json.update(to_json(*training.generate));
    json["text"] = bytes_as_text(text.text);
    std::cout << json.dump(2) << std::endl;
    return;
  }
  const Settings& settings = training.settings;
  fmt::print("model   {}, {} parameters in {}, {}\n", plan.model.name, thousands(report.parameters),
             name_of(settings.dtype), plan.resumed->name());
  fmt::print("ranks   {}, stage {}: {} of weights on each\n\n", ranks_, settings.zero.stage,
             human_bytes(report.memory[0].peak[Category::parameters]));
  std::fflush(stdout);
  std::cout << generated_text(text, *training.generate, style_) << std::flush;
}

void Printer::training(const RankReport& report, const Training& training,
                       const std::filesystem::path& folder) {
  if (!speaks_) return;
  if (json_) {
    std::cout << summary_json(report, training, ranks_).dump(2) << std::endl;
    return;
  }
  std::cout << train_table(report, training, ranks_, style_);
  if (!report.generations.empty()) {
    std::cout << '\n' << generated_text(report.generations.back(), *training.generate, style_);
  }
  std::cout << "\nrun folder: " << folder.string() << std::endl;
}

void Printer::comparison(const CompareResult& result, const std::filesystem::path& folder) {
  if (!speaks_) return;
  if (json_) {
    std::cout << compare_json(result, judge(result)).dump(2) << std::endl;
    return;
  }
  std::cout << compare_table(result, style_) << "\nrun folder: " << folder.string() << std::endl;
}

}  // namespace zerolab
