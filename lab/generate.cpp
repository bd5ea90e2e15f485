#include "lab/generate.hpp"

#include "lab/commands.hpp"
#include "lab/print.hpp"
#include "stages/checkpoint/load.hpp"
#include "stages/comm/agreement.hpp"

namespace zerolab {

Training generating(const Plan& plan, const Effective& effective, int rank) {
  Training training = training_for(plan, effective, rank);
  training.steps = plan.resumed->steps();
  training.build = [&plan] {
    std::unique_ptr<Model> model = build_model_of(plan);
    for (const Parameter& parameter : model->parameters()) {
      model->parameters().freeze(parameter.name());
    }
    return model;
  };
  training.resume = [&plan](Runtime& runtime, Engine& engine) {
    const Checkpoint& checkpoint = plan.resumed->checkpoint;
    load_weights(runtime, engine, checkpoint);
    engine.resume(checkpoint.manifest().progress);
  };
  return training;
}

void generate_command(Communicator& communicator, const Plan& plan) {
  const Effective effective = settings_for(plan, std::nullopt);
  agree(communicator, facts_of(plan, {effective}));
  const Training training = generating(plan, effective, communicator.rank());
  Recorder recorder(communicator.rank());
  const RankReport report = train(communicator, recorder, training);
  Printer(communicator, plan.options).text(report, training, plan);
}

}  // namespace zerolab
