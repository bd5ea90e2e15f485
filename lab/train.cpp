#include <fmt/format.h>

#include "lab/commands.hpp"
#include "lab/failures/mistakes/mistake.hpp"
#include "lab/print.hpp"
#include "stages/checkpoint/consolidate.hpp"
#include "stages/checkpoint/load.hpp"
#include "stages/checkpoint/save.hpp"
#include "stages/engine/summary.hpp"

namespace zerolab {
namespace {

// Where the model states come from, and whether they can go where they are to be saved.
void begin(Training& training, const Plan& plan, Printer& print) {
  training.resume = [&plan, &print](Runtime& runtime, Engine& engine) {
    if (plan.resumed) {
      print.loaded(load_checkpoint(runtime, engine, plan.resumed->checkpoint), *plan.resumed);
    }
    if (plan.options.weights) load_weights(runtime, engine, *plan.options.weights);
    const Saving& saving = plan.options.saving;
    if (saving.folder) prepare_to_save(runtime.comm, *saving.folder);
    if (saving.weights_file) rehearse_consolidation(runtime, engine);
  };
}

Mistake::Save save_of(const Plan& plan) {
  if (plan.options.broken) {
    const Mistake mistake = find_mistake(*plan.options.broken, "--break");
    if (mistake.save) return mistake.save;
  }
  return save_checkpoint;
}

void save_when_due(Training& training, const Plan& plan, const Effective& effective, Printer& print,
                   std::vector<CheckpointResult>& saved) {
  const Saving& saving = plan.options.saving;
  if (!saving.folder && !saving.weights_file) return;
  const auto run = run_for_checkpoint(plan, effective);
  training.after_step = [&saving, &print, &saved, run, save = save_of(plan),
                         steps = training.steps](Runtime& runtime, Engine& engine) {
    const Index step = engine.steps_done();
    const bool last = step == steps;
    if (saving.folder && (last || (saving.every > 0 && step % saving.every == 0))) {
      const SaveReport report =
          save(runtime, engine, {.folder = *saving.folder, .keep = saving.keep, .run = run});
      const std::filesystem::path path = std::filesystem::path(*saving.folder) / report.tag;
      saved.push_back({step, path.string(), report.bytes, report.seconds});
      print.warning(report.note);
    }
    if (saving.weights_file && last) {
      const ConsolidateReport report = consolidate(runtime, engine, *saving.weights_file, run);
      saved.push_back({step, *saving.weights_file, report.bytes, report.seconds});
    }
  };
}

}  // namespace

void train_command(Communicator& communicator, const Plan& plan) {
  const std::filesystem::path folder = plan.options.out;
  const Effective effective = settings_for(plan, std::nullopt);
  prepare_together(communicator, plan, {effective});
  const std::unique_ptr<Recorder> recorder = recorder_for(communicator, plan.options, folder);

  Printer print(communicator, plan.options);
  print.heading(plan, {effective}, communicator);
  Training training = training_for(plan, effective, communicator.rank());
  begin(training, plan, print);
  std::vector<CheckpointResult> saved;
  save_when_due(training, plan, effective, print, saved);
  training.on_step = print.steps(training);
  training.on_text = print.texts(training);
  const RankReport report =
      run_in_folder(communicator, *recorder, plan, effective, training, folder, saved);
  print.end_of_steps();
  print.training(report, training, folder);
}

}  // namespace zerolab
