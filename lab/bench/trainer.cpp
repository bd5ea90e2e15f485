#include "lab/bench/trainer.hpp"

#include <utility>

#include "lab/run.hpp"
#include "stages/device/cpu/cpu_device.hpp"

namespace zerolab::bench {

Training training_of(const std::string& model, int ranks, int stage) {
  RunOptions options;
  options.model = model;
  const Plan plan = make_plan(options, "zerolab_bench", ranks);
  return training_for(plan, settings_for(plan, stage), 0);
}

Trainer::Trainer(Communicator& communicator, Training training, std::unique_ptr<std::ostream> lines,
                 const MakeDevice& make_device)
    : training_(std::move(training)),
      recorder_(communicator.rank(), std::move(lines)),
      ledger_("device", recorder_),
      device_(make_device ? make_device(ledger_)
                          : std::make_unique<CpuDevice>(ledger_, training_.threads)),
      comm_(communicator, *device_, ledger_, recorder_),
      runtime_{*device_, ledger_, recorder_, comm_, training_.settings, training_.seed},
      model_(training_.build()),
      engine_(runtime_, *model_, training_.stage(runtime_), training_.sequence_length) {
  barrier(comm_, "set-up");
  recorder_.start_clock();
}

void Trainer::run(int steps) {
  for (int i = 0; i < steps; ++i) engine_.step(training_.batches);
}

}  // namespace zerolab::bench
