#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "stages/device/cpu/cpu_device.hpp"
#include "stages/engine/gathered_parameters.hpp"
#include "stages/stages.hpp"
#include "tests/support/trainings.hpp"

namespace zerolab::test {

/// One rank of a training, that a test steps itself.
struct Rank {
  Rank(Communicator& communicator, const Training& of)
      : training(of),
        recorder(communicator.rank()),
        ledger("device", recorder),
        device(ledger),
        comm(communicator, device, ledger, recorder),
        model(training.build()),
        engine(runtime, *model, make_stage(runtime), training.sequence_length) {}

  Parameter& parameter(std::string_view name) { return model->parameters().at(name); }
  std::vector<Parameter*> parameters(const std::vector<std::string>& names) {
    std::vector<Parameter*> result;
    for (const std::string& name : names) result.push_back(&parameter(name));
    return result;
  }
  std::vector<float> values(std::string_view name) {
    GatheredParameters scope(runtime, engine.stage(), {&parameter(name)});
    return read_in_scope(runtime, parameter(name));
  }
  /// Everything is as if nobody had looked.
  bool rests() {
    for (const Parameter& each : model->parameters()) {
      const Status at_rest =
          training.settings.zero.stage == 3 ? Status::not_available : Status::available;
      if (each.status() != at_rest || each.active() != 0 || each.in_scope()) return false;
    }
    return ledger.live()[Category::gather_buffers] == 0;
  }

  Training training;
  Recorder recorder;
  Ledger ledger;
  CpuDevice device;
  CommStream comm;
  Runtime runtime{device, ledger, recorder, comm, training.settings, training.seed};
  std::unique_ptr<Model> model;
  Engine engine;
};

}  // namespace zerolab::test
