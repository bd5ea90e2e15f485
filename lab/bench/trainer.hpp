#pragma once

#include <functional>
#include <memory>
#include <ostream>

#include "stages/engine/training.hpp"

namespace zerolab::bench {

/// The training of a preset as `zerolab train` would run it, on this many ranks.
Training training_of(const std::string& model, int ranks, int stage);

/// One rank of a training that stays alive between steps, so that several can be stepped in turn
/// while all of them are warm.
class Trainer {
 public:
  using MakeDevice = std::function<std::unique_ptr<Device>(Ledger&)>;

  /// Every rank of `communicator` makes one. `lines`, if given, gets the log.
  Trainer(Communicator& communicator, Training training,
          std::unique_ptr<std::ostream> lines = nullptr, const MakeDevice& make_device = {});

  void run(int steps);
  const Ledger& ledger() const { return ledger_; }
  Runtime& runtime() { return runtime_; }
  Engine& engine() { return engine_; }
  CommTotals comm() const { return comm_.totals(); }

 private:
  Training training_;
  Recorder recorder_;
  Ledger ledger_;
  std::unique_ptr<Device> device_;
  CommStream comm_;
  Runtime runtime_;
  std::unique_ptr<Model> model_;
  Engine engine_;
};

}  // namespace zerolab::bench
