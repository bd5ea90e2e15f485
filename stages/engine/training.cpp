#include "stages/engine/training.hpp"

#include <fmt/format.h>

#include <cstring>

#include "stages/comm/agreement.hpp"
#include "stages/comm/checked_communicator.hpp"
#include "stages/device/cpu/cpu_device.hpp"

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

void run_steps(Engine& engine, const Training& training, const Ledger& ledger,
               const CommStream& comm, RankReport& report) {
  const auto counted = [&comm](CommTotals& into, const auto& work) {
    const CommTotals before = comm.totals();
    auto result = work();
    into += comm.totals() - before;
    return result;
  };
  for (Index step = 1; step <= training.steps; ++step) {
    report.steps.push_back(counted(report.comm, [&] { return engine.step(training.batches); }));
    report.fetches += report.steps.back().fetches;
    if (training.on_step) training.on_step(step, report.steps.back(), ledger);
    check_progress(engine, report, training.steps);
    if (training.validation && due(step, training.validate_every, training.steps)) {
      const double loss = counted(report.validation_comm, [&] {
        return engine.evaluate(training.validation, training.validation_sequences);
      });
      report.validation.push_back({step, loss});
    }
    if (training.generate && due(step, training.generate_every, training.steps)) {
      const std::string text = counted(report.generation_comm, [&] {
        return generate(engine, training.vocab_size, *training.generate);
      });
      report.generations.push_back({step, text});
      if (training.on_text) training.on_text(report.generations.back());
    }
  }
}

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
    if (training.prepare) training.prepare(runtime, engine);
    barrier(comm, "set-up");
    recorder.start_clock();
    run_steps(engine, training, ledger, comm, report);
    recorder.set_phase(Phase::tear_down);

    report.parameters = model->parameters().numel();
    report.trainable = model->parameters().trainable_numel();
    report.memory = memory_of_all_ranks(comm, ledger);
  }
  report.left_over = ledger.live();
  return report;
}

}  // namespace zerolab
