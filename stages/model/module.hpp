#pragma once

#include <deque>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "stages/device/device.hpp"
#include "stages/model/parameter.hpp"
#include "stages/tensor/tensor.hpp"
#include "stages/trace/recorder.hpp"

namespace zerolab {

class Module;

/// What kind of run of a module this is.
enum class VisitKind { forward, backward, evaluate };
std::string_view name_of(VisitKind kind);

/// One run of one module.
struct Visit {
  Module& module;
  VisitKind kind;
};

/// What the surroundings of a model want to know while it runs. The engine implements it.
class ModuleHooks {
 public:
  virtual ~ModuleHooks() = default;
  virtual void before(const Visit& visit) = 0;
  /// Also after a run that threw.
  virtual void after(const Visit& visit) = 0;

  /// Where the gradient of this micro-step goes: numel() elements, overwritten.
  virtual float* gradient_buffer(Parameter& parameter) = 0;
  /// Every use of the parameter in this micro-step has added its part.
  virtual void gradient_ready(Parameter& parameter) = 0;
};

/// Everything a layer needs to run. One for the whole model of a rank.
struct ModelContext {
  Device& device;
  Ledger& ledger;
  Recorder& recorder;
  ModuleHooks& hooks;
  const Setting* micro_batch = nullptr;  // activations are proportional to it
  VisitKind pass = VisitKind::forward;   // which pass is running
};

/// The parameters of a model in order of registration; ids are positions in this order.
class ParameterSet {
 public:
  Parameter& add(std::string name, Shape shape, Initial initial);

  std::size_t size() const { return parameters_.size(); }
  auto begin() { return parameters_.begin(); }
  auto end() { return parameters_.end(); }
  auto begin() const { return parameters_.begin(); }
  auto end() const { return parameters_.end(); }
  Parameter& operator[](std::size_t i) { return parameters_[i]; }
  /// Throws Error (Code::usage) when there is none of this name.
  Parameter& at(std::string_view name);

  std::vector<Index> sizes() const;
  /// Elements of all parameters; a tied parameter is one.
  Index numel() const;

 private:
  std::deque<Parameter> parameters_;  // addresses stay
};

/// A layer, or a group of layers. `forward` and `backward` call the hooks and then the layer's own
/// code; a layer reaches a weight only through `weight` and gives a gradient only through
/// `add_gradient`.
class Module {
 public:
  explicit Module(std::string name) : name_(std::move(name)) {}
  virtual ~Module() = default;
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  const std::string& name() const { return name_; }

  /// Keeps what backward needs, except in an evaluation pass.
  Tensor forward(const Tensor& input);
  /// Gradient of the loss by the output in, by the input out. Undoes the latest forward not yet
  /// undone; throws Error (Code::gradient_state) when there is none, or when the layer does not
  /// give a gradient for every weight that it read there. Layers that have no differentiable input
  /// return an empty tensor.
  Tensor backward(const Tensor& output_gradient);

  /// The parameters this module reads: its own, and those registered as external.
  const std::vector<Parameter*>& reads() const { return reads_; }
  /// Whether it reads this parameter as a registered external one.
  bool borrows(const Parameter& parameter) const;
  const std::vector<Module*>& children() const { return children_; }
  /// This module or one below it, by full name; null if there is none.
  Module* find(std::string_view name);

  void attach(ModelContext& context);

 protected:
  virtual Tensor do_forward(const Tensor& input) = 0;
  virtual Tensor do_backward(const Tensor& output_gradient) = 0;

  Parameter& own(Parameter& parameter);
  void adopt(Module& child) { children_.push_back(&child); }

  ModelContext& context() const { return *context_; }
  Device& device() const { return context_->device; }
  /// Whether a backward pass will follow, so that its inputs must be kept.
  bool keeps() const { return context_->pass == VisitKind::forward; }

  /// Read access to a weight. Throws Error (Code::parameter_not_available).
  const float* weight(Parameter& parameter);

  /// `write(out)` overwrites numel() elements with this use's gradient. The first use of a
  /// micro-step writes in place, later ones beside it and are then added, in order.
  template <typename Write>
  void add_gradient(Parameter& parameter, Write write) {
    Buffer later_use;
    float* out = begin_gradient(parameter, later_use);
    write(out);
    end_gradient(parameter, later_use);
  }

  Tensor activation(Shape shape, std::string_view what, Dtype dtype = Dtype::fp32) const;

 private:
  friend void register_external_parameter(Module& module, Parameter& parameter);
  friend void unregister_external_parameter(Module& module, Parameter& parameter);

  template <typename Run>
  Tensor between_hooks(const Visit& visit, Run run);

  float* begin_gradient(Parameter& parameter, Buffer& later_use);
  void end_gradient(Parameter& parameter, const Buffer& later_use);

  std::string name_;
  std::vector<Parameter*> reads_;
  std::vector<Parameter*> external_;
  std::vector<Module*> children_;
  ModelContext* context_ = nullptr;
  // Weights read in each forward that backward has not undone; every read owes a gradient.
  std::vector<Index> reads_to_undo_;
  Index weights_read_ = 0;  // in the run that is going on
  Index gradients_given_ = 0;
};

/// Says that `module` reads a parameter that another module owns, so that stage 3 gathers it before
/// the module runs (DeepSpeed has the same call).
void register_external_parameter(Module& module, Parameter& parameter);
/// Throws Error (Code::usage) when it was not registered.
void unregister_external_parameter(Module& module, Parameter& parameter);

}  // namespace zerolab
