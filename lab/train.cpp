#include <fmt/format.h>

#include "lab/commands.hpp"
#include "lab/print.hpp"
#include "stages/engine/summary.hpp"

namespace zerolab {

void train_command(Communicator& communicator, const Plan& plan) {
  const std::filesystem::path folder = plan.options.out;
  const Effective effective = settings_for(plan, std::nullopt);
  prepare_together(communicator, plan, {effective});
  const std::unique_ptr<Recorder> recorder = recorder_for(communicator, plan.options, folder);

  Printer print(communicator, plan.options);
  print.heading(plan, {effective}, communicator);
  Training training = training_for(plan, effective, communicator.rank());
  training.on_step = print.steps(training);
  training.on_text = print.texts(training);
  const RankReport report =
      run_in_folder(communicator, *recorder, plan, effective, training, folder);
  print.end_of_steps();
  print.training(report, training, folder);
}

}  // namespace zerolab
