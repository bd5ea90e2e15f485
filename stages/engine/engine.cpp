#include "stages/engine/engine.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "stages/base/scoped.hpp"
#include "stages/engine/prepare_model.hpp"
#include "stages/engine/replicas.hpp"
#include "stages/engine/states.hpp"
#include "stages/model/parameter_state.hpp"
#include "stages/optim/optimizer.hpp"

namespace zerolab {

/// What a step has to know of all ranks.
struct Engine::Outcome {
  MeanLoss loss;
  double grad_norm = 0;  // of the gradients as they are: of the scaled loss, and not corrected
  RoundingLoss rounding = {};
  int rank = -1;            // the lowest with a gradient that is not finite,
  Index parameter = kNone;  // and its first such gradient
  Index sum = kNone;        // a parameter whose mean gradient is not finite
};

Engine::Engine(Runtime& runtime, Model& model, std::unique_ptr<Stage> stage, Index sequence_length)
    : runtime_(runtime),
      model_(model),
      model_states_(model.parameters(), runtime.settings, runtime.ranks(), runtime.recorder),
      stage_(std::move(stage)),
      sequence_length_(sequence_length),
      context_{.device = runtime.device,
               .ledger = runtime.ledger,
               .recorder = runtime.recorder,
               .hooks = *this,
               .dtype = runtime.settings.dtype,
               .activations = &activations_,
               .auto_register = runtime.settings.zero.auto_register_external_parameters},
      activations_(runtime.settings, model, context_.pass, runtime.recorder) {
  if (runtime.settings.dtype == Dtype::fp16) scaler_ = LossScaler(runtime.settings.loss_scale);
  runtime_.model_states = &model_states_;
  runtime_.recorder.set_phase(Phase::set_up);
  prepare_model(model_, runtime.settings);
  model_.root().attach(context_);
  stage_->set_up(model_);
}

Engine::~Engine() {
  runtime_.recorder.end_all_modules();
  runtime_.model_states = nullptr;
}

StepResult Engine::step(const BatchSource& batches) {
  const Recorder::Clock::time_point start = Recorder::Clock::now();
  const Settings& settings = runtime_.settings;
  Recorder& recorder = runtime_.recorder;
  const Index step = progress_.steps_done + 1;
  refuse_open_scopes(step);
  recorder.set_step(step, 0);
  recorder.set_phase(Phase::forward);
  if (settings.zero.enable_sanity_checks) check_replicas(runtime_, model_.parameters(), step);
  const FetchCounts fetched_before = stage_->fetch_counts();

  not_finite_ = kNone;
  rounding_ = {};
  recomputing_ = 0;
  losses_ = {};
  for (Index g = 0; g < settings.gradient_accumulation_steps; ++g) {
    micro_step_ = {g, settings.gradient_accumulation_steps};
    recorder.set_step(step, g);
    // Micro-batch i of rank r in micro-step g takes position (g N + r) micro + i.
    const Index position = (g * runtime_.ranks() + runtime_.rank()) * settings.micro_batch;
    run_pass(VisitKind::forward, [&] {
      Tensor logits = forward(batches, step, position, {settings.micro_batch, sequence_length_});
      losses_.add(loss_of(logits));
      backward(std::move(logits));
    });
  }

  recorder.set_phase(Phase::step);
  const Outcome outcome = share_outcome();
  const double scale = scaler_.scale();
  const double divisor = scale / outcome.loss.correction;  // what gradients are too large by
  StepResult result{
      .step = step,
      .loss = outcome.loss.value,
      .grad_norm = outcome.grad_norm / divisor,
      .learning_rate = scheduled_learning_rate(settings.schedule, settings.optimizer.learning_rate,
                                               progress_.updates_done),
      .scale = scale,
      .rounding = outcome.rounding};
  const bool finite = std::isfinite(result.loss) && std::isfinite(result.grad_norm);
  const bool checked = settings.dtype != Dtype::bf16 || settings.check_grad_overflow;
  result.skipped = checked && !finite;
  if (!result.skipped) {
    update_weights(result.learning_rate, result.grad_norm, divisor);
    recorder.set_phase(Phase::publish);
    stage_->publish();
    recorder.set_phase(Phase::step);
  }
  const bool can_go_on = scaler_.update(result.skipped);
  if (result.skipped) {
    result.why_skipped = why_not_finite(outcome);
    if (scaler_.dynamic() && can_go_on) {
      result.why_skipped += scaler_.scale() == scale
                                ? fmt::format("; loss scale {} stays (hysteresis)", scale)
                                : fmt::format("; loss scale {} -> {}", scale, scaler_.scale());
    }
  }

  result.hash = sums_over_ranks({hash_here(0)}).front();
  runtime_.ledger.mark_step_boundary();
  result.fetches = stage_->fetch_counts() - fetched_before;
  progress_.steps_done = step;
  result.seconds = std::chrono::duration<double>(Recorder::Clock::now() - start).count();
  recorder.record(StepEvent{result.loss, result.grad_norm, result.scale, result.skipped,
                            result.hash, result.learning_rate, result.rounding.share(),
                            result.why_skipped});
  if (!can_go_on) {
    throw Error(Code::loss_scale_at_minimum,
                fmt::format("step {}: {}, and the loss scale is {} already, the least there may be",
                            step, why_not_finite(outcome), scale),
                "find out where it comes from: lower the learning rate, clip the gradient "
                "(gradient_clipping), or train in bf16");
  }
  if (!finite && !result.skipped) {
    throw Error(Code::not_finite, fmt::format("step {}: {}", step, why_not_finite(outcome)),
                "lower the learning rate, clip the gradient (gradient_clipping), or let such steps "
                "be skipped (bf16.check_grad_overflow)");
  }
  return result;
}

void Engine::update_weights(float learning_rate, double grad_norm, double divisor) {
  const Settings& settings = runtime_.settings;
  OptimizerSettings optimizer = settings.optimizer;
  optimizer.learning_rate = learning_rate;
  const auto factor =
      static_cast<float>(clip_factor(grad_norm, settings.gradient_clipping) / divisor);
  ++progress_.updates_done;
  for (const OwnedSlice& slice : stage_->owned()) {
    if (!slice.parameter->requires_grad()) continue;
    update(runtime_.device, optimizer, progress_.updates_done, factor, slice);
  }
}

std::string Engine::why_not_finite(const Outcome& outcome) const {
  if (!outcome.loss.not_finite.empty()) {
    return fmt::format("the loss is {} (rank {})", std::abs(outcome.loss.value),
                       fmt::join(outcome.loss.not_finite, ", "));
  }
  const auto name_of = [this](Index id) -> const std::string& {
    return model_.parameters()[static_cast<std::size_t>(id)].name();
  };
  if (outcome.parameter != kNone) {
    return fmt::format("the gradient of '{}' on rank {} is not finite", name_of(outcome.parameter),
                       outcome.rank);
  }
  return fmt::format(
      "the gradient of '{}' is finite on every rank and in every micro-step, but their mean is not",
      name_of(outcome.sum));
}

// What a scope holds whole would be stale after the update.
void Engine::refuse_open_scopes(Index step) {
  for (const Parameter& parameter : model_.parameters()) {
    if (!parameter.in_scope()) continue;
    throw Error(Code::held_by_scope,
                fmt::format("step {} would update parameter '{}' on rank {}, which a gather scope "
                            "holds",
                            step, parameter.name(), runtime_.rank()),
                "end every GatheredParameters before the step");
  }
}

double Engine::evaluate(const BatchSource& batches, Index sequences,
                        std::optional<BatchShape> shape) {
  // Of batches with a shape of their own nothing depends on the settings.
  const Scoped governed(context_.activations,
                        shape ? static_cast<const Governor*>(nullptr) : context_.activations);
  if (!shape) shape = BatchShape{runtime_.settings.micro_batch, sequence_length_};
  const Index micro = shape->sequences;
  const Index rounds = ceil_div(sequences, micro * runtime_.ranks());
  losses_ = {};
  for (Index round = 0; round < rounds; ++round) {
    const Index position = (round * runtime_.ranks() + runtime_.rank()) * micro;
    run_pass(VisitKind::evaluate, [&] {
      losses_.add(loss_of(forward(batches, 0, position, *shape)));
      targets_ = {};
    });
  }
  return MeanLoss(share(runtime_.comm, losses_.message(), "validation loss")).value;
}

std::vector<float> Engine::logits_behind(const std::vector<std::int32_t>& tokens, Index at) {
  std::vector<float> result;
  const Scoped governed(context_.activations, static_cast<const Governor*>(nullptr));
  run_pass(VisitKind::evaluate, [&] {
    runtime_.recorder.set_phase(Phase::generate);
    const Tensor logits = run_model(tokens, {1, static_cast<Index>(tokens.size())});
    const Index row = model_.targets() == Targets::last_position ? 0 : at;
    result = floats_on_host(runtime_, logits.values() + row * logits.width(), logits.width());
  });
  return result;
}

// However a pass ends, nothing stays gathered.
template <typename Pass>
void Engine::run_pass(VisitKind kind, Pass pass) {
  set_pass(kind);
  try {
    pass();
  } catch (...) {
    try {
      stage_->abandon_pass();
    } catch (...) {  // what ended the pass is what has to be told
    }
    throw;
  }
  stage_->end_pass();
}

void Engine::set_pass(VisitKind kind) {
  context_.pass = kind;
  context_.keeps = kind == VisitKind::forward;
}

Tensor Engine::forward(const BatchSource& batches, Index step, Index position, BatchShape shape) {
  const bool training = context_.pass == VisitKind::forward;
  runtime_.recorder.set_phase(training ? Phase::forward : Phase::evaluate);
  const auto [sequences, length] = shape;
  const auto count = static_cast<std::size_t>(sequences * length);
  std::vector<std::int32_t> host_tokens(count);
  std::vector<std::int32_t> host_targets(count);
  batches(step, position, sequences, length, host_tokens.data(), host_targets.data());
  if (model_.targets() == Targets::last_position) {
    for (Index i = 0; i < sequences; ++i) {
      host_targets[static_cast<std::size_t>(i)] =
          host_targets[static_cast<std::size_t>((i + 1) * length - 1)];
    }
    host_targets.resize(static_cast<std::size_t>(sequences));
  }
  losses_.count(host_targets);
  targets_ = uploaded({static_cast<Index>(host_targets.size())}, host_targets, "targets");
  return run_model(host_tokens, shape);
}

Tensor Engine::run_model(const std::vector<std::int32_t>& tokens, BatchShape shape) {
  runtime_.recorder.end_all_modules();
  for (Parameter& parameter : model_.parameters()) parameter.begin_micro_step();
  return model_.root().forward(uploaded({shape.sequences, shape.length}, tokens, "tokens"));
}

Tensor Engine::uploaded(Shape shape, const std::vector<std::int32_t>& host, const char* what) {
  Tensor tensor(runtime_.ledger, std::move(shape), Dtype::int32, Category::activations, what,
                context_.activations);
  runtime_.device.upload(tensor.ints(), host.data(), tensor.numel() * size_of(Dtype::int32));
  return tensor;
}

double Engine::loss_of(const Tensor& logits) {
  const double sum = runtime_.device.cross_entropy(logits.rows(), logits.width(), targets_.ints(),
                                                   logits.values());
  return sum / static_cast<double>(logits.rows());
}

void Engine::backward(Tensor logits) {
  runtime_.recorder.set_phase(Phase::backward);
  set_pass(VisitKind::backward);
  gradients_left_ = model_.parameters().size();
  const RoundingLoss before = runtime_.device.rounding_loss();
  const RoundingLoss sums_before = runtime_.device.rounding_loss_of_sums();
  runtime_.device.cross_entropy_backward(
      logits.rows(), logits.width(),
      static_cast<float>(scaler_.scale() / static_cast<double>(logits.rows())), targets_.ints(),
      logits.values());
  targets_ = {};
  hand_over_gradients();
  model_.root().backward(logits);
  model_.root().check_all_undone();
  logits = {};
  while (gradients_left_ > 0) {  // what is still incomplete stays so
    hand_over(model_.parameters()[--gradients_left_]);
    hand_over_gradients();
  }
  stage_->finish_gradients();
  rounding_ += runtime_.device.rounding_loss() - before;
  rounding_ += runtime_.device.rounding_loss_of_sums() - sums_before;
}

// Every rank must reduce the same gradients in the same order, though what a rank uses, and in
// which order, may depend on its data. So they go from the last registered parameter to the first,
// about as backward completes them; one that is early waits, one that nobody used has its turn all
// the same.
void Engine::hand_over_gradients() {
  while (gradients_left_ > 0) {
    Parameter& next = model_.parameters()[gradients_left_ - 1];
    if (next.requires_grad() && next.contributions < next.uses) return;
    --gradients_left_;
    hand_over(next);
  }
}

// One that nobody gave anything to is zero.
void Engine::hand_over(Parameter& parameter) {
  if (!parameter.requires_grad()) return;
  if (parameter.gradient == nullptr) {
    runtime_.device.fill(gradient_buffer(parameter), parameter.numel(), 0);
  } else if (not_finite_ == kNone &&
             !runtime_.device.finite(parameter.gradient, parameter.numel())) {
    not_finite_ = parameter.id();
  }
  stage_->gradient_ready(parameter, micro_step_);
  parameter.gradient = nullptr;
}

// Norm and hash count every element once over all ranks.
std::vector<OwnedSlice> Engine::counted() const {
  std::vector<OwnedSlice> slices = stage_->owned();
  if (!stage_->replicated()) return slices;
  return share_of(slices, runtime_.rank(), runtime_.ranks());
}

// One small collective for everything: this rank's exact sum of squares, what its gradients were
// like, and its losses.
Engine::Outcome Engine::share_outcome() {
  struct Mine {
    SquareSum squares;
    RoundingLoss rounding;
    Index not_finite = kNone, not_finite_sum = kNone;
  };
  Mine mine{{}, rounding_, not_finite_, kNone};
  for (const OwnedSlice& slice : counted()) {
    if (!slice.parameter->requires_grad()) continue;
    mine.squares += runtime_.device.square_sum(slice.gradient, slice.range.size());
    if (mine.not_finite_sum == kNone && !mine.squares.finite()) {
      mine.not_finite_sum = slice.parameter->id();
    }
  }
  std::vector<std::byte> message = losses_.message();
  message.insert(message.begin(), sizeof(mine), std::byte{});
  std::memcpy(message.data(), &mine, sizeof(mine));
  const auto all = share(runtime_.comm, message, "loss and gradient norm");

  Outcome outcome{.loss = MeanLoss(all, sizeof(mine))};
  SquareSum squares;
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    std::memcpy(&mine, all[rank].data(), sizeof(mine));
    squares += mine.squares;
    outcome.rounding += mine.rounding;
    outcome.sum = std::max(outcome.sum, mine.not_finite_sum);
    if (mine.not_finite == kNone || outcome.rank >= 0) continue;
    outcome.rank = static_cast<int>(rank);
    outcome.parameter = mine.not_finite;
  }
  outcome.grad_norm = squares.root();
  return outcome;
}

TrainingProgress Engine::progress() const {
  TrainingProgress progress = progress_;
  progress.scaler = scaler_.state();
  return progress;
}

void Engine::resume(const TrainingProgress& progress) {
  progress_ = progress;
  scaler_.resume(progress.scaler);
}

std::vector<std::uint64_t> Engine::state_hashes() {
  std::vector<std::uint64_t> mine;
  const int moments = moments_needed(runtime_.settings.optimizer);
  for (int state = 0; state <= moments; ++state) mine.push_back(hash_here(state));
  return sums_over_ranks(std::move(mine));
}

// State 0 is what the weights are rounded from, the others are the moments, which a frozen
// parameter does not have.
std::uint64_t Engine::hash_here(int state) const {
  std::uint64_t sum = 0;
  for (const OwnedSlice& slice : counted()) {
    const ConstValues values =
        state == 0 ? slice.exact()
                   : ConstValues(slice.moments.at(static_cast<std::size_t>(state - 1)));
    if (values == nullptr) continue;
    sum += runtime_.device.hash(static_cast<std::uint64_t>(slice.parameter->id()),
                                slice.range.begin, values, slice.range.size());
  }
  return sum;
}

std::vector<std::uint64_t> Engine::sums_over_ranks(std::vector<std::uint64_t> mine) {
  const auto all = share(runtime_.comm, std::as_bytes(std::span(mine)), "parameter hash");
  std::fill(mine.begin(), mine.end(), 0);
  for (const std::vector<std::byte>& of_rank : all) {
    std::vector<std::uint64_t> theirs(mine.size());
    std::memcpy(theirs.data(), of_rank.data(), of_rank.size());
    for (std::size_t i = 0; i < mine.size(); ++i) mine[i] += theirs[i];
  }
  return mine;
}

void Engine::before(const Visit& visit) {
  if (visit.kind == VisitKind::recompute && recomputing_++ == 0) {  // it rounds no gradients
    rounding_ += runtime_.device.rounding_loss();
  }
  runtime_.recorder.begin_module(visit.module.name());
  for (Parameter* parameter : visit.module.reads()) ParameterState::begin_use(*parameter);
  try {
    stage_->fetch(visit);
  } catch (...) {  // then it does not run, and nobody says that it ended
    end_uses(visit);
    throw;
  }
  span_starts_.push_back(Recorder::Clock::now());
}

void Engine::end_uses(const Visit& visit) {
  for (Parameter* parameter : visit.module.reads()) {
    ParameterState::end_use(*parameter, visit.module.name(), runtime_.recorder);
  }
}

// The span is the run alone: what the module reads is whole before it begins, and released after it
// has been recorded.
void Engine::after(const Visit& visit) {
  Recorder& recorder = runtime_.recorder;
  recorder.record(SpanEvent{visit.module.name(), name_of(visit.kind),
                            recorder.microseconds(span_starts_.back()),
                            recorder.microseconds(Recorder::Clock::now())});
  span_starts_.pop_back();
  if (visit.kind == VisitKind::recompute && --recomputing_ == 0) {
    rounding_ = rounding_ - runtime_.device.rounding_loss();
  }
  end_uses(visit);
  stage_->release(visit);
  recorder.end_module();
}

void Engine::reads_also(const Visit& visit, Parameter& parameter) {
  ParameterState::begin_use(parameter);
  try {
    stage_->fetch_also(visit, parameter);
  } catch (...) {
    ParameterState::end_use(parameter, visit.module.name(), runtime_.recorder);
    throw;
  }
}

Values Engine::gradient_buffer(Parameter& parameter) {
  const Values buffer = stage_->gradient_buffer(parameter, micro_step_);
  if (parameter.gradient_status() != GradientStatus::partial) {
    ParameterState::move_gradient(parameter, GradientStatus::partial, runtime_.recorder);
  }
  return buffer;
}

void Engine::gradient_ready(Parameter& /*parameter*/) { hand_over_gradients(); }

}  // namespace zerolab
