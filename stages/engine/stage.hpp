#pragma once

#include <cstdint>
#include <vector>

#include "stages/comm/collectives.hpp"
#include "stages/config/settings.hpp"
#include "stages/model/model.hpp"
#include "stages/optim/owned_slice.hpp"

namespace zerolab {

/// What one rank runs on. No stage knows which device, communicator or budget is behind it.
struct Runtime {
  Device& device;
  Ledger& ledger;
  Recorder& recorder;
  CommStream& comm;
  const Settings& settings;
  std::uint64_t seed = 0;
  const Governor* model_states = nullptr;  // answers for their memory; the engine says who

  int rank() const { return comm.rank(); }
  int ranks() const { return comm.size(); }
};

/// One forward and backward pass of an optimizer step (gradient accumulation).
struct MicroStep {
  Index index = 0;
  Index count = 1;

  bool first() const { return index == 0; }
  bool last() const { return index + 1 == count; }
};

/// How a stage that gathers parameters was prepared for the modules that read them, in parameters.
/// Those that were whole anyway count as neither.
struct FetchCounts {
  Index hits = 0;    // prefetched when the module came
  Index misses = 0;  // gathered when it came
  Index unused = 0;  // prefetched and let go unread

  FetchCounts& operator+=(const FetchCounts& other) {
    hits += other.hits;
    misses += other.misses;
    unused += other.unused;
    return *this;
  }
  FetchCounts operator-(const FetchCounts& earlier) const {
    return {hits - earlier.hits, misses - earlier.misses, unused - earlier.unused};
  }
  bool operator==(const FetchCounts&) const = default;
};

/// A ZeRO stage: it says what is where, and when it moves. Everything else (loop, hooks,
/// accumulation, norm, clipping, update, hash) is the engine's, once. The calls come from the
/// rank's compute thread, in the order below.
class Stage {
 public:
  virtual ~Stage() = default;

  /// Takes memory for the model states this rank holds and initialises them.
  virtual void set_up(Model& model) = 0;

  /// Before a module runs: what it reads must be AVAILABLE afterwards.
  virtual void fetch(const Visit& visit) = 0;
  /// The module that runs reads one parameter more, which is in visit.module.reads() by now.
  virtual void fetch_also(const Visit& /*visit*/, Parameter& /*parameter*/) {}
  /// After a module ran.
  virtual void release(const Visit& visit) = 0;

  /// Where the gradient of this micro-step is to be written: numel() elements.
  virtual Values gradient_buffer(Parameter& parameter, MicroStep micro_step) = 0;
  /// The gradient of this micro-step is complete there.
  virtual void gradient_ready(Parameter& parameter, MicroStep micro_step) = 0;
  /// The backward pass is over: whatever is on its way must arrive.
  virtual void finish_gradients() = 0;

  /// What this rank updates; after finish_gradients of the last micro-step its gradients are the
  /// mean over ranks and micro-steps. Also this rank's part of the frozen parameters, with a master
  /// and nothing else: over all ranks that do not replicate, every element comes once.
  virtual std::vector<OwnedSlice> owned() = 0;
  /// Whether every rank owns everything.
  virtual bool replicated() const = 0;

  /// After the update: whoever needs the new weights gets them.
  virtual void publish() = 0;

  /// After every pass and every evaluation: nothing may be left gathered or in flight.
  virtual void end_pass() = 0;
  /// Instead, when an exception has ended a pass.
  virtual void abandon_pass() {}

  /// A scope outside of the model begins (engine/gathered_parameters.hpp): these must be AVAILABLE
  /// afterwards. `let_go` ends it; before that, `take_over` for each one that has been written, the
  /// same values on every rank.
  virtual void gather(const std::vector<Parameter*>& /*parameters*/) {}
  virtual void take_over(const Parameter& /*parameter*/) {}
  virtual void let_go(const std::vector<Parameter*>& /*parameters*/) {}

  /// Since set_up.
  virtual FetchCounts fetch_counts() const { return {}; }
};

/// How a gradient becomes the mean over N ranks and G micro-steps: multiplied by `before` on its
/// rank, and its sum by `after`. Their product is 1 / (N G). Unless the settings say otherwise
/// `before` is 1, and `after` is the one factor there is (design, section 3).
struct MeanFactors {
  float before = 1, after = 1;
};
inline MeanFactors mean_factors(const Runtime& runtime) {
  const Settings& settings = runtime.settings;
  const auto ranks = static_cast<double>(runtime.ranks());
  const double divisor = settings.prescale_gradients ? ranks : settings.gradient_predivide_factor;
  const double all = ranks * static_cast<double>(settings.gradient_accumulation_steps);
  return {static_cast<float>(1.0 / divisor), static_cast<float>(divisor / all)};
}

}  // namespace zerolab
