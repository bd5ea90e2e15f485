#include <fmt/format.h>

#include "lab/commands.hpp"
#include "lab/compare_json.hpp"
#include "lab/compare_result.hpp"
#include "lab/print.hpp"
#include "stages/engine/summary.hpp"

namespace zerolab {
namespace {

StageResult result_of(const RankReport& report, const Training& training, int ranks) {
  StageResult result;
  result.stage = training.settings.zero.stage;
  for (const StepResult& step : report.steps) {
    result.loss.push_back(step.loss);
    result.grad_norm.push_back(step.grad_norm);
    result.param_hash.push_back(step.hash);
    result.step_seconds.push_back(step.seconds);
  }
  result.peak = report.memory[0].peak;
  result.category_peak = report.memory[0].category_peak;
  result.steady = report.memory[0].steady;
  result.traffic = report.comm.traffic;
  for (const ValidationResult& validation : report.validation) {
    result.validation_loss.push_back(validation.loss);
  }
  result.tokens_per_second = tokens_per_second(report, training, ranks);
  return result;
}

}  // namespace

void compare_command(Communicator& communicator, const Plan& plan) {
  const std::filesystem::path folder = plan.options.out;
  std::vector<Effective> settings;  // before anything is written: all their mistakes come first
  std::vector<std::string> subfolders;
  for (const int stage : plan.options.stages) {
    settings.push_back(settings_for(plan, stage));
    subfolders.push_back(fmt::format("stage{}", stage));
  }
  prepare_together(communicator, plan, settings, subfolders);

  Printer print(communicator, plan.options);
  print.heading(plan, settings, communicator);
  CompareResult result;
  result.model = plan.model.name;
  result.world_size = communicator.size();
  result.transport = communicator.description();
  result.gradient_accumulation_steps = settings.front().settings.gradient_accumulation_steps;
  result.reduces_every_micro_step = settings.front().settings.zero.reduce_every_micro_step;
  for (std::size_t i = 0; i < settings.size(); ++i) {
    const std::filesystem::path stage_folder = folder / subfolders[i];
    const std::unique_ptr<Recorder> recorder =
        recorder_for(communicator, plan.options, stage_folder);
    Training training = training_for(plan, settings[i], communicator.rank());
    training.on_step = print.steps(training);
    const RankReport report =
        run_in_folder(communicator, *recorder, plan, settings[i], training, stage_folder);
    print.end_of_steps();
    result.parameters = report.parameters;
    result.stages.push_back(result_of(report, training, communicator.size()));
  }

  const Verdict verdict = judge(result);
  if (communicator.rank() == 0) write_json(folder / "compare.json", compare_json(result, verdict));
  const bool broken = !verdict.bit_identical && verdict.promised;
  if (!broken || !plan.options.json) print.comparison(result, folder);  // one JSON object, not two
  if (broken) {
    throw Error(Code::not_bit_identical, verdict.first_difference,
                "this is a defect of zerolab, or of the machine: please report it with the run "
                "folder, " +
                    folder.string());
  }
}

}  // namespace zerolab
