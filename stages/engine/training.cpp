#include "stages/engine/training.hpp"

#include <fmt/format.h>

#include <cstring>

#include "stages/comm/agreement.hpp"
#include "stages/comm/checked_communicator.hpp"
#include "stages/device/cpu/cpu_device.hpp"
#include "stages/engine/prepare_model.hpp"

namespace zerolab {
namespace {

/// What ranks that are told different things would not notice, or would hang over: weights depend
/// on nothing but the seed, so each would train a model of its own, and the loss would fall all the
/// same; a rank that generates more than the others would wait for them in its passes.
nlohmann::ordered_json facts(const Training& training) {
  nlohmann::ordered_json json{{"seed", training.seed}};
  if (!training.generate) return json;
  json["generate_every"] = training.generate_every;
  const nlohmann::ordered_json sampling = to_json(*training.generate);
  for (const auto& [key, value] : sampling.items()) json["generate." + key] = value;
  return json;
}

bool due(Index step, Index every, Index steps) {
  return step == steps || (every > 0 && step % every == 0);
}

// Without a loss scale that falls, nothing but the batch changes after a skipped step.
constexpr Index kMostSkippedInARow = 3;

void check_progress(const Engine& engine, const RankReport& report, Index steps) {
  if (engine.adapts()) return;
  Index in_a_row = 0;
  for (auto step = report.steps.rbegin(); step != report.steps.rend() && step->skipped; ++step) {
    ++in_a_row;
  }
  const bool nothing_learned = engine.steps_done() == steps && engine.updates_done() == 0;
  if (in_a_row < kMostSkippedInARow && !nothing_learned) return;
  throw Error(
      Code::not_finite,
      fmt::format("step {}: {}; {}, and nothing changes that would make the next one better",
                  engine.steps_done(), report.steps.back().why_skipped,
                  nothing_learned ? std::string("no step has changed a weight")
                                  : fmt::format("{} steps in a row were skipped", in_a_row)),
      "lower the learning rate, or clip the gradient (gradient_clipping); instead of a fixed "
      "fp16.loss_scale try a smaller one, or 0, which finds it");
}

/// The work of one rank behind set-up.
class Steps {
 public:
  Steps(Runtime& runtime, Engine& engine, const Training& training, RankReport& report)
      : runtime_(runtime), engine_(engine), training_(training), report_(report) {}

  void run() {
    // A training that has come to its end before has nothing to do but write.
    if (engine_.steps_done() >= training_.steps) {
      if (training_.generate) write_text();
      return;
    }
    refuse_nothing_to_train(engine_.model().parameters());
    while (engine_.steps_done() < training_.steps) step();
  }

 private:
  template <typename Work>
  auto counted(CommTotals& into, const Work& work) {
    const CommTotals before = runtime_.comm.totals();
    auto result = work();
    into += runtime_.comm.totals() - before;
    return result;
  }

  void step() {
    report_.steps.push_back(counted(report_.comm, [&] { return engine_.step(training_.batches); }));
    report_.fetches += report_.steps.back().fetches;
    const Index step = engine_.steps_done();
    if (training_.on_step) training_.on_step(step, report_.steps.back(), runtime_.ledger);
    check_progress(engine_, report_, training_.steps);
    if (training_.validation && due(step, training_.validate_every, training_.steps)) {
      const double loss = counted(report_.validation_comm, [&] {
        return engine_.evaluate(training_.validation, training_.validation_sequences);
      });
      report_.validation.push_back({step, loss});
    }
    if (training_.generate && due(step, training_.generate_every, training_.steps)) write_text();
    if (training_.after_step) training_.after_step(runtime_, engine_);
  }

  void write_text() {
    const std::string text = counted(report_.generation_comm, [&] {
      return generate(engine_, training_.vocab_size, *training_.generate);
    });
    report_.generations.push_back({engine_.steps_done(), text});
    if (training_.on_text) training_.on_text(report_.generations.back());
  }

  Runtime& runtime_;
  Engine& engine_;
  const Training& training_;
  RankReport& report_;
};

std::vector<MemoryUse> memory_of_all_ranks(CommStream& comm, const Ledger& ledger) {
  const MemoryUse mine{ledger.peak(), ledger.category_peak(), ledger.steady()};
  std::vector<MemoryUse> result;
  for (const auto& bytes : share(comm, std::as_bytes(std::span(&mine, 1)), "memory report")) {
    std::memcpy(&result.emplace_back(), bytes.data(), sizeof(MemoryUse));
  }
  return result;
}

}  // namespace

std::unique_ptr<Device> cpu_device(Ledger& ledger, int threads) {
  return std::make_unique<CpuDevice>(ledger, threads);
}

std::string device_description(const Training& training) {
  Recorder recorder(0);
  Ledger ledger("device", recorder);
  return training.device(ledger, training.threads)->description();
}

RankReport train(Communicator& communicator, Recorder& recorder, const Training& training) {
  agree(communicator, facts(training));
  RankReport report;
  Ledger ledger("device", recorder, training.device_memory);
  {
    const std::unique_ptr<Device> device = training.device(ledger, training.threads);
    const std::unique_ptr<Communicator> wrapped =
        training.network ? training.network(communicator) : nullptr;
    Communicator& plain = wrapped ? *wrapped : communicator;
    LinkCommunicator linked(plain, training.link);
    Communicator& network = training.link.slows() ? linked : plain;
    CheckedCommunicator checked(network);
    CommStream comm(training.check_collectives ? checked : network, *device, ledger, recorder);
    Runtime runtime{*device, ledger, recorder, comm, training.settings, training.seed};
    const std::unique_ptr<Model> model = training.build();
    Engine engine(runtime, *model, training.stage(runtime), training.sequence_length);
    if (training.resume) training.resume(runtime, engine);
    if (training.prepare) training.prepare(runtime, engine);
    barrier(comm, "set-up");
    recorder.start_clock();
    Steps(runtime, engine, training, report).run();
    recorder.set_phase(Phase::tear_down);

    report.parameters = model->parameters().numel();
    report.trainable = model->parameters().trainable_numel();
    report.memory = memory_of_all_ranks(comm, ledger);
  }
  report.left_over = ledger.live();
  return report;
}

}  // namespace zerolab
