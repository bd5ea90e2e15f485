#pragma once

#include <string>
#include <string_view>

#include "stages/tensor/tensor.hpp"

namespace zerolab {

class Recorder;

/// Where the whole value of a parameter is, on one rank.
enum class Status {
  not_available,  // this rank holds its piece only
  inflight,       // an all-gather is writing it
  available,      // whole, may be read
};
std::string_view name_of(Status status);

/// Why a parameter moves.
enum class Cause {
  set_up,        // stages 0 to 2 hold it whole from the start
  fetch,         // a module is about to read its own
  external,      // a module is about to read another one's, which it registered
  prefetch,      // a module that comes later will read it
  persist,       // it stays whole from step to step, and has new values
  release,       // nobody needs it any more
  step,          // the update has made the copy stale
  gather_scope,  // somebody outside of the model reads or writes it
  publish,       // stages 1 and 2: each rank's updated slice goes to everybody
};
std::string_view name_of(Cause cause);

/// How far the gradient of a parameter is, on one rank.
enum class GradientStatus {
  none,
  partial,   // contributions are being added
  ready,     // all contributions of this step (stages 0, 1) or micro-step (2, 3) are in
  reducing,  // a collective is summing it over the ranks
  reduced,   // the owned part is the mean
  freed,     // the whole gradient is gone, the owned part is kept
};
std::string_view name_of(GradientStatus status);

/// How a parameter starts; elements come from Philox, keyed by seed, parameter id and element.
struct Initial {
  enum class Kind { zeros, ones, normal };
  Kind kind = Kind::zeros;
  float deviation = 0;  // normal

  static Initial zeros() { return {}; }
  static Initial ones() { return {Kind::ones, 0}; }
  static Initial normal(double deviation) { return {Kind::normal, static_cast<float>(deviation)}; }
};

/// One weight of the model: what it is, and what state it and its gradient are in on this rank. Its
/// statuses and counts are written by parameter_state.hpp only.
class Parameter {
 public:
  Parameter(std::string name, Index id, Shape shape, Initial initial)
      : name_(std::move(name)), id_(id), shape_(std::move(shape)), initial_(initial) {}

  const std::string& name() const { return name_; }
  Index id() const { return id_; }  // position in the order of registration
  const Shape& shape() const { return shape_; }
  Index numel() const { return zerolab::numel(shape_); }
  const Initial& initial() const { return initial_; }
  /// Whether it is trained; a frozen one has neither gradient nor moments (ParameterSet::freeze).
  bool requires_grad() const { return requires_grad_; }

  Status status() const { return status_; }
  GradientStatus gradient_status() const { return gradient_status_; }
  /// Modules that are running and read this parameter.
  Index active() const { return active_; }
  /// Whether a scope (engine/gathered_parameters.hpp) holds it whole.
  bool in_scope() const { return in_scope_; }

  /// The whole value, numel() elements; set by the stage, read through Module::weight only.
  Values data;
  /// Where this micro-step's gradient is being finished; null until somebody gives a part of it.
  Values gradient;

  /// Uses in the forward pass of this micro-step, and how many of them have given their gradient.
  /// A frozen parameter has none.
  Index uses = 0;
  Index contributions = 0;

  /// Nobody has used it yet, whatever an earlier pass has left.
  void begin_micro_step() {
    uses = contributions = 0;
    gradient = nullptr;
  }

 private:
  friend struct ParameterState;
  friend class ParameterSet;

  std::string name_;
  Index id_;
  Shape shape_;
  Initial initial_;
  bool requires_grad_ = true;
  Status status_ = Status::not_available;
  GradientStatus gradient_status_ = GradientStatus::none;
  Index active_ = 0;
  bool in_scope_ = false;
};

}  // namespace zerolab
