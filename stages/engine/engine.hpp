#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "stages/engine/activation_memory.hpp"
#include "stages/engine/losses.hpp"
#include "stages/engine/model_state_memory.hpp"
#include "stages/engine/stage.hpp"

namespace zerolab {

/// Fills `count` sequences, beginning with this position of the global batch of `step`, with tokens
/// and targets (host memory, [count, length] each). A target below 0 does not count: the loss is
/// the mean over those that do, of all ranks and micro-steps, however they are spread.
using BatchSource = std::function<void(Index step, Index position, Index count, Index length,
                                       std::int32_t* tokens, std::int32_t* targets)>;

/// Of one micro-batch.
struct BatchShape {
  Index sequences = 0;
  Index length = 0;  // tokens of each
};

struct StepResult {
  Index step = 0;  // from 1
  double loss = 0;
  double grad_norm = 0;
  float learning_rate = 0;
  double scale = 1;  // what the loss was multiplied with
  bool skipped = false;
  std::string why_skipped = {};  // for people
  RoundingLoss rounding = {};    // of gradients, over all ranks
  std::uint64_t hash = 0;
  FetchCounts fetches = {};
  double seconds = 0;
};

/// How far a training has come, beside its model states.
struct TrainingProgress {
  Index steps_done = 0;
  Index updates_done = 0;  // of them, those that changed the weights
  LossScaler::State scaler = {};
};

/// Trains one model under one stage on one rank: the loop, the hooks, gradient accumulation, norm,
/// clipping, update and hash. Every rank calls the same functions in the same order.
class Engine : private ModuleHooks {
 public:
  /// Sets the model states up. `model` and `runtime` must outlive the engine. Throws OutOfMemory.
  Engine(Runtime& runtime, Model& model, std::unique_ptr<Stage> stage, Index sequence_length);
  ~Engine() override;
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  /// One optimizer step, steps count from 1. It is skipped on every rank, and changes no weight,
  /// when a loss or the gradient norm is not finite. Throws Error after recording such a step:
  /// Code::loss_scale_at_minimum when the scale cannot be lowered for the next one,
  /// Code::not_finite when it was not skipped (bf16.check_grad_overflow is false).
  StepResult step(const BatchSource& batches);
  Index steps_done() const { return progress_.steps_done; }
  Index updates_done() const { return progress_.updates_done; }
  TrainingProgress progress() const;
  /// Goes on from there; the model states are somebody else's care (checkpoint/load.hpp).
  void resume(const TrainingProgress& progress);
  /// Whether skipping a step makes the next one different: the loss scale falls.
  bool adapts() const { return scaler_.dynamic(); }

  /// The mean loss over `sequences` positions of step 0 of the source, without learning. In batches
  /// of `shape`; like a training's unless given.
  double evaluate(const BatchSource& batches, Index sequences,
                  std::optional<BatchShape> shape = std::nullopt);

  /// Logits of the token behind position `at` of this sequence, on the host. It is an evaluation
  /// pass, so every rank makes it together with the others, of a sequence of any length.
  std::vector<float> logits_behind(const std::vector<std::int32_t>& tokens, Index at);

  /// This rank's slices for sums over all ranks: there every element comes once, whether ranks
  /// replicate or not. Norm, hash and checkpoints are made of them.
  std::vector<OwnedSlice> counted() const;

  /// One hash over all ranks for each kind of state that slices have: what their weights are
  /// rounded from (StepResult::hash), then the moments. Every rank calls it.
  std::vector<std::uint64_t> state_hashes();

  Model& model() { return model_; }
  Index sequence_length() const { return sequence_length_; }
  Stage& stage() { return *stage_; }

 private:
  static constexpr Index kNone = -1;

  void before(const Visit& visit) override;
  void after(const Visit& visit) override;
  void reads_also(const Visit& visit, Parameter& parameter) override;
  void end_uses(const Visit& visit);
  Values gradient_buffer(Parameter& parameter) override;
  void gradient_ready(Parameter& parameter) override;

  void refuse_open_scopes(Index step);
  template <typename Pass>
  void run_pass(VisitKind kind, Pass pass);
  void set_pass(VisitKind kind);
  Tensor forward(const BatchSource& batches, Index step, Index position, BatchShape shape);
  Tensor run_model(const std::vector<std::int32_t>& tokens, BatchShape shape);
  Tensor uploaded(Shape shape, const std::vector<std::int32_t>& host, const char* what);
  double loss_of(const Tensor& logits);
  void backward(Tensor logits);
  void hand_over_gradients();
  void hand_over(Parameter& parameter);
  struct Outcome;
  Outcome share_outcome();
  std::string why_not_finite(const Outcome& outcome) const;
  void update_weights(float learning_rate, double grad_norm, double divisor);
  std::uint64_t hash_here(int state) const;
  std::vector<std::uint64_t> sums_over_ranks(std::vector<std::uint64_t> mine);

  Runtime& runtime_;
  Model& model_;
  ModelStateMemory model_states_;
  std::unique_ptr<Stage> stage_;
  Index sequence_length_;
  ModelContext context_;
  ActivationMemory activations_;
  MicroStep micro_step_;
  std::size_t gradients_left_ = 0;  // to hand over in this backward
  Tensor targets_;
  Losses losses_;  // of this step or evaluation, on this rank
  LossScaler scaler_;
  TrainingProgress progress_;  // but for the scaler's
  Index not_finite_ = kNone;   // the first parameter in this step whose gradient here is not finite
  RoundingLoss rounding_;      // of this step's gradients here
  Index recomputing_ = 0;      // modules that run again inside backward
  std::vector<Recorder::Clock::time_point> span_starts_;
};

}  // namespace zerolab
