#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "stages/base/scoped.hpp"
#include "stages/device/device.hpp"
#include "stages/model/parameter_set.hpp"
#include "stages/tensor/tensor.hpp"
#include "stages/trace/recorder.hpp"

namespace zerolab {

class Module;

/// What kind of run of a module this is.
enum class VisitKind {
  forward,
  recompute,  // forward once more, inside backward, for what the first run did not keep
  backward,
  evaluate,
};
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
  /// The module that runs reads one parameter more than it said: it is registered by now, and must
  /// be AVAILABLE afterwards. Only with ModelContext::auto_register.
  virtual void reads_also(const Visit& visit, Parameter& parameter) = 0;

  /// Where the gradient of this micro-step goes: numel() elements, overwritten.
  virtual Values gradient_buffer(Parameter& parameter) = 0;
  /// Every use of the parameter in this micro-step has added its part, or has none to add: where
  /// Parameter::gradient is null nobody had, and the gradient is zero.
  virtual void gradient_ready(Parameter& parameter) = 0;
};

/// Everything a layer needs to run. One for the whole model of a rank.
struct ModelContext {
  Device& device;
  Ledger& ledger;
  Recorder& recorder;
  ModuleHooks& hooks;
  Dtype dtype = Dtype::fp32;              // of weights, gradients and activations
  const Governor* activations = nullptr;  // what their memory depends on
  bool auto_register = false;             // external parameters, at their first read

  VisitKind pass = VisitKind::forward;  // which pass is running
  bool keeps = true;                    // whether what runs must keep what its backward needs
  Module* leaf = nullptr;               // the leaf module that is running, if one is
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
  /// The C++ class without its namespaces: "TransformerBlock".
  std::string class_name() const;

  /// Keeps what backward needs, unless no backward will come: in an evaluation, or where neither
  /// the input needs a gradient nor anything in here is trained.
  Tensor forward(const Tensor& input);
  /// Gradient of the loss by the output in, by the input out. Undoes the latest forward not yet
  /// undone; throws Error (Code::gradient_state) when there is none, or when the layer does not
  /// give a gradient for every weight that it read there. Returns an empty tensor where no gradient
  /// is needed: the layer has no differentiable input, or nothing to train at or before it.
  Tensor backward(const Tensor& output_gradient);

  /// Throws Error (Code::gradient_state) for a module, this or one below it, with a forward that
  /// backward has not undone: a part of its gradients would be missing.
  void check_all_undone() const;

  /// The parameters this module reads: its own, and those registered as external; of a leaf also
  /// those of everything below it.
  const std::vector<Parameter*>& reads() const { return leaf_ ? leaf_reads_ : reads_; }
  /// Whether it reads this parameter as a registered external one.
  bool borrows(const Parameter& parameter) const;
  /// Those that this module owns, without what is below it, and those that were registered with it.
  std::vector<Parameter*> own_parameters() const;
  const std::vector<Parameter*>& external_parameters() const { return external_; }
  const std::vector<Module*>& children() const { return children_; }
  /// This module or one below it, by full name; null if there is none.
  Module* find(std::string_view name);

  /// Makes it a leaf (DeepSpeed's term): what is below it makes no visits of its own, so all of its
  /// parameters are fetched together, before it runs, and their gradients are complete when its
  /// backward ends, zero where nothing was read. Which parts of a leaf run may therefore depend on
  /// the data, and differ from rank to rank.
  void make_leaf() { leaf_ = true; }
  bool is_leaf() const { return leaf_; }
  /// Keeps nothing of its forward but the input, and runs again in backward (activation
  /// checkpointing; Chen et al., 2016).
  void recompute_in_backward() { recomputed_ = true; }
  /// The parts that it pays to recompute one at a time: theirs is most of what forward keeps.
  virtual std::vector<Module*> segments() { return {}; }
  /// Whether there is a forward that backward has not undone,
  bool keeps_a_forward() const { return !to_undo_.empty(); }
  /// and the bytes of activations that these have left, beside their outputs.
  Index kept_inside() const;

  void attach(ModelContext& context);

 protected:
  virtual Tensor do_forward(const Tensor& input) = 0;
  virtual Tensor do_backward(const Tensor& output_gradient) = 0;

  Parameter& own(Parameter& parameter);
  void adopt(Module& child) { children_.push_back(&child); }

  ModelContext& context() const { return *context_; }
  Device& device() const { return context_->device; }
  /// Whether backward will undo this forward, so that its inputs must be kept.
  bool keeps() const { return context_->keeps; }

  /// Read access to a weight. Throws Error (Code::parameter_not_available).
  ConstValues weight(Parameter& parameter);

  /// `write(out)` overwrites numel() elements with this use's gradient. The first use of a
  /// micro-step writes in place, later ones beside it and are then added, in order. A frozen
  /// parameter has no gradient: `write` is not called.
  template <typename Write>
  void add_gradient(Parameter& parameter, Write write) {
    if (skip_frozen(parameter)) return;
    Buffer later_use;
    write(begin_gradient(parameter, later_use));
    end_gradient(parameter, later_use);
  }
  /// For a `write` that computes more than this gradient: of a frozen parameter it is written too,
  /// and thrown away.
  template <typename Write>
  void add_gradient_with_others(Parameter& parameter, Write write) {
    if (skip_frozen(parameter)) {
      const Tensor unused(context_->ledger, parameter.shape(), context_->dtype,
                          Category::activations, name_ + " gradient of a frozen parameter");
      write(unused.values());
    } else {
      add_gradient(parameter, write);
    }
  }

  /// Runs something as an evaluation does, inside a pass that trains: no backward will undo it.
  template <typename Run>
  Tensor without_gradient(Run run) {
    const Scoped pass(context_->pass, VisitKind::evaluate);
    const Scoped keeps(context_->keeps, false);
    return run();
  }

  /// x += y, as far as both are there: a gradient that nobody needs is empty.
  void add_to(Tensor& x, const Tensor& y) const;

  /// Of the model's type, unless another one is named.
  Tensor activation(Shape shape, std::string_view what) const;
  Tensor activation(Shape shape, std::string_view what, Dtype dtype) const;

 private:
  friend void register_external_parameter(Module& module, Parameter& parameter);
  friend void unregister_external_parameter(Module& module, Parameter& parameter);

  /// What backward has to know of a forward.
  struct Undo {
    bool needed = true;               // the output's gradient
    Tensor input = {};                // if it is recomputed
    std::size_t reads = 0;            // each owes a gradient
    std::vector<Parameter*> closing;  // their uses end with backward, given or not
    Index inside = 0;                 // bytes of activations left, beside the output
  };

  bool learns() const;
  bool owns(const Parameter& parameter) const;
  void collect_reads(std::vector<Parameter*>& reads) const;
  void find_leaf_reads();
  template <typename Run>
  Tensor between_hooks(VisitKind kind, Run run);
  Tensor run_forward(const Tensor& input, bool keeps, Undo& undo);
  void register_late(Parameter& parameter);
  bool skip_frozen(const Parameter& parameter);
  Values begin_gradient(Parameter& parameter, Buffer& later_use);
  void end_gradient(Parameter& parameter, const Buffer& later_use);
  void close_gradient(Parameter& parameter);

  std::string name_;
  std::vector<Parameter*> reads_;
  std::vector<Parameter*> external_;
  std::vector<Module*> children_;
  bool leaf_ = false;
  bool recomputed_ = false;
  std::vector<Parameter*> leaf_reads_;  // as of the latest visit
  ModelContext* context_ = nullptr;
  std::vector<Undo> to_undo_;        // forwards that backward has not undone
  std::vector<Parameter*> read_;     // weights, in the forward that is going on
  std::size_t gradients_given_ = 0;  // in the backward that is going on
};

/// Says that `module` reads a parameter that another module owns, so that stage 3 gathers it before
/// the module runs (DeepSpeed has the same call).
void register_external_parameter(Module& module, Parameter& parameter);
/// Throws Error (Code::usage) when it was not registered.
void unregister_external_parameter(Module& module, Parameter& parameter);

}  // namespace zerolab
