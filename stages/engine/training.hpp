#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "stages/comm/link.hpp"
#include "stages/engine/generation.hpp"

namespace zerolab {

/// What the model wrote after a step, without the prompt.
struct Generation {
  Index step = 0;
  std::string text;
};

std::unique_ptr<Device> cpu_device(Ledger& ledger, int threads);

/// One training run, as every rank is told it.
struct Training {
  std::function<std::unique_ptr<Model>()> build;
  std::function<std::unique_ptr<Stage>(Runtime&)> stage;  // such as make_stage (stages.hpp)
  Index sequence_length = 0;
  Settings settings;
  std::uint64_t seed = 0;
  Index steps = 0;  // in all, with those before a checkpoint that is resumed from
  Index device_memory = Ledger::kUnlimited;
  int threads = 1;
  Link link;                       // emulated between the ranks; as it is unless given
  bool check_collectives = false;  // before data moves (comm/checked_communicator.hpp)
  BatchSource batches;

  /// What computes.
  std::function<std::unique_ptr<Device>(Ledger&, int threads)> device = cpu_device;
  /// What lies between this rank and the others; nothing unless given.
  std::function<std::unique_ptr<Communicator>(Communicator&)> network = {};

  // Held-out loss: on this many sequences, after every `validate_every` steps (0: only after the
  // last). No source, no validation.
  BatchSource validation;
  Index validation_sequences = 0;
  Index validate_every = 0;

  // Text after every `generate_every` steps (0: only after the last), behind that step's
  // validation.
  std::optional<Sampling> generate = {};
  Index generate_every = 0;
  Index vocab_size = 256;  // of the model, which may have fewer tokens than there are bytes

  /// Called on every rank behind set-up: gives the model states other values than the initial ones
  /// (checkpoint/load.hpp). From then on `steps` counts from where the engine is.
  std::function<void(Runtime&, Engine&)> resume = {};
  /// Called on every rank between that and the first step: to look at weights, or write them
  /// (engine/gathered_parameters.hpp).
  std::function<void(Runtime&, Engine&)> prepare = {};
  /// Called on every rank when all is done for a step: to save (checkpoint/save.hpp).
  std::function<void(Runtime&, Engine&)> after_step = {};
  /// Called on every rank after each step, for progress.
  std::function<void(Index step, const StepResult&, const Ledger&)> on_step = {};
  /// The same with each text.
  std::function<void(const Generation&)> on_text = {};
};

struct ValidationResult {
  Index step = 0;
  double loss = 0;
};

/// What was written between two steps: a checkpoint, or a file of weights.
struct CheckpointResult {
  Index step = 0;
  std::string path;
  Index bytes = 0;     // of all ranks
  double seconds = 0;  // in which rank 0 did not train
};

/// Device memory of one rank, as the ledger has it.
struct MemoryUse {
  Usage peak, category_peak, steady;
};

/// What one rank measured.
struct RankReport {
  Index parameters = 0;  // elements; a tied parameter counts once
  Index trainable = 0;   // of them
  std::vector<StepResult> steps;
  std::vector<ValidationResult> validation;
  std::vector<Generation> generations;        // the same on every rank
  std::vector<CheckpointResult> checkpoints;  // from whoever saves them, in Training::after_step
  std::vector<MemoryUse> memory;              // of every rank
  FetchCounts fetches;                        // of the optimizer steps
  CommTotals comm;                            // of the same
  CommTotals validation_comm;                 // of the evaluations between them
  CommTotals generation_comm;                 // of the passes that generated text
  Usage left_over;  // live after the engine and the model are gone: all zero
};

/// What a training runs on, for run.json.
std::string device_description(const Training& training);

/// Runs it on this rank. Every rank must call it with the same training; throws Error
/// (Code::ranks_disagree) on all ranks when their seeds differ, or what they are to generate.
RankReport train(Communicator& communicator, Recorder& recorder, const Training& training);

}  // namespace zerolab
