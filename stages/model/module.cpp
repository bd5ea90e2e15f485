#include "stages/model/module.hpp"

#include <cxxabi.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <typeinfo>

#include "stages/base/error.hpp"
#include "stages/model/parameter_state.hpp"

namespace zerolab {
namespace {

bool contains(const std::vector<Parameter*>& list, const Parameter& parameter) {
  return std::find(list.begin(), list.end(), &parameter) != list.end();
}

}  // namespace

std::string_view name_of(VisitKind kind) {
  switch (kind) {
    case VisitKind::forward:
      return "forward";
    case VisitKind::recompute:
      return "recompute";
    case VisitKind::backward:
      return "backward";
    case VisitKind::evaluate:
      return "evaluate";
  }
  return "?";
}

std::string Module::class_name() const {
  int failed = 0;
  const std::unique_ptr<char, void (*)(void*)> whole(
      abi::__cxa_demangle(typeid(*this).name(), nullptr, nullptr, &failed), std::free);
  const std::string name = failed == 0 ? whole.get() : typeid(*this).name();
  return name.substr(name.rfind(':') + 1);  // npos + 1 is 0
}

// A run that ends by an exception ends all the same: what was gathered for it is let go.
template <typename Run>
Tensor Module::between_hooks(VisitKind kind, Run run) {
  if (context_->leaf != nullptr) return run();  // the leaf makes the visit
  const Scoped running(context_->leaf, leaf_ ? this : nullptr);
  if (leaf_) find_leaf_reads();
  const Visit visit{*this, kind};
  context_->hooks.before(visit);
  Tensor result;
  try {
    result = run();
  } catch (...) {
    try {
      context_->hooks.after(visit);
    } catch (...) {  // what ended the run is what has to be told
    }
    throw;
  }
  context_->hooks.after(visit);
  return result;
}

Tensor Module::forward(const Tensor& input) {
  // What is registered on the way may have to be trained, so nothing can be left out beforehand.
  const bool needed = input.needs_gradient() || context_->auto_register || learns();
  Undo undo;
  const Index before = context_->ledger.live()[Category::activations];
  Tensor output = run_forward(input, keeps() && needed && !recomputed_, undo);
  output.set_needs_gradient(needed);
  if (context_->pass == VisitKind::forward) {
    for (Parameter* parameter : undo.closing) ++parameter->uses;
  }
  if (!keeps()) return output;
  undo.needed = needed;
  undo.inside = context_->ledger.live()[Category::activations] - before - output.bytes();
  if (recomputed_) undo.input = input;
  to_undo_.push_back(std::move(undo));
  return output;
}

// Every rank must be done with a parameter's gradient at the same place. A module that has read it
// is, when it has given it; for what it declares and did not read its visit says so. In a leaf both
// are inside the leaf's one visit, whatever a rank has read.
Tensor Module::run_forward(const Tensor& input, bool keeps, Undo& undo) {
  const Scoped scoped(context_->keeps, keeps);
  read_.clear();
  Tensor output = between_hooks(context_->pass, [&] { return do_forward(input); });
  undo.reads = read_.size();
  if (context_->leaf != nullptr) return output;
  for (Parameter* parameter : reads()) {
    if (parameter->requires_grad() && !contains(read_, *parameter)) {
      undo.closing.push_back(parameter);
    }
  }
  return output;
}

Tensor Module::backward(const Tensor& output_gradient) {
  if (to_undo_.empty()) {
    throw Error(Code::gradient_state,
                fmt::format("module '{}' on rank {} runs backward more often than forward", name_,
                            context_->recorder.rank()),
                "run backward once for every forward");
  }
  Undo undo = std::move(to_undo_.back());
  to_undo_.pop_back();
  if (!undo.needed) return {};
  if (!output_gradient) {
    throw Error(Code::gradient_state,
                fmt::format("module '{}' on rank {} gets no gradient in backward, though it has "
                            "something to train or its input needs one",
                            name_, context_->recorder.rank()),
                "a layer that adds one tensor into another says so: add_to(x, y) instead of "
                "device().add");
  }
  if (recomputed_) {
    const Scoped pass(context_->pass, VisitKind::recompute);
    run_forward(std::exchange(undo.input, {}), true, undo);
  }
  gradients_given_ = 0;
  Tensor input_gradient = between_hooks(VisitKind::backward, [&] {
    Tensor gradient = do_backward(output_gradient);
    for (Parameter* parameter : undo.closing) close_gradient(*parameter);
    return gradient;
  });
  if (gradients_given_ != undo.reads) {
    throw Error(Code::gradient_state,
                fmt::format("module '{}' on rank {} read {} weight(s) in forward and gave {} "
                            "gradient(s) in backward",
                            name_, context_->recorder.rank(), undo.reads, gradients_given_),
                "call add_gradient in backward once for every weight() in forward; a weight "
                "without its gradient would be taken for one that the loss does not depend on");
  }
  return input_gradient;
}

void Module::check_all_undone() const {
  if (!to_undo_.empty()) {
    throw Error(
        Code::gradient_state,
        fmt::format("module '{}' on rank {} ran forward {} time(s) more often than backward", name_,
                    context_->recorder.rank(), to_undo_.size()),
        "run backward once for every forward; what needs no gradient runs inside "
        "without_gradient");
  }
  for (const Module* child : children_) child->check_all_undone();
}

Index Module::kept_inside() const {
  Index bytes = 0;
  for (const Undo& undo : to_undo_) bytes += undo.inside;
  return bytes;
}

Module* Module::find(std::string_view name) {
  if (name_ == name) return this;
  for (Module* child : children_) {
    if (Module* found = child->find(name)) return found;
  }
  return nullptr;
}

std::vector<Parameter*> Module::own_parameters() const {
  std::vector<Parameter*> own;
  for (Parameter* parameter : reads_) {
    if (!contains(external_, *parameter)) own.push_back(parameter);
  }
  return own;
}

bool Module::borrows(const Parameter& parameter) const {
  return leaf_ ? contains(leaf_reads_, parameter) && !owns(parameter)
               : contains(external_, parameter);
}

bool Module::owns(const Parameter& parameter) const {
  return (contains(reads_, parameter) && !contains(external_, parameter)) ||
         std::any_of(children_.begin(), children_.end(),
                     [&](const Module* child) { return child->owns(parameter); });
}

// Anything in here that is trained.
bool Module::learns() const {
  const auto trained = [](const Parameter* parameter) { return parameter->requires_grad(); };
  return std::any_of(reads_.begin(), reads_.end(), trained) ||
         std::any_of(children_.begin(), children_.end(),
                     [](const Module* child) { return child->learns(); });
}

void Module::attach(ModelContext& context) {
  context_ = &context;
  for (Module* child : children_) child->attach(context);
}

void Module::collect_reads(std::vector<Parameter*>& reads) const {
  for (Parameter* parameter : reads_) {
    if (!contains(reads, *parameter)) reads.push_back(parameter);
  }
  for (const Module* child : children_) child->collect_reads(reads);
}

void Module::find_leaf_reads() {
  leaf_reads_.clear();
  collect_reads(leaf_reads_);
}

Parameter& Module::own(Parameter& parameter) {
  reads_.push_back(&parameter);
  return parameter;
}

ConstValues Module::weight(Parameter& parameter) {
  const bool declared = contains(reads_, parameter);
  if (!declared && context_->auto_register) register_late(parameter);
  if (parameter.status() != Status::available) {
    throw Error(
        Code::parameter_not_available,
        fmt::format("module '{}' on rank {} reads parameter '{}', which is {} (step {}, {})", name_,
                    context_->recorder.rank(), parameter.name(), name_of(parameter.status()),
                    context_->recorder.step(), name_of(context_->recorder.phase())),
        declared ? "run the module through forward() or backward(): their hooks gather it first"
                 : fmt::format("the module does not own it: call "
                               "register_external_parameter({}, {}) after building the model, so "
                               "that stage 3 gathers it before the module runs{}",
                               name_, parameter.name(),
                               context_->leaf == nullptr
                                   ? ", or read it in a GatheredParameters scope"
                                   : "; in a leaf module it cannot register itself, since what "
                                     "is read there may differ from rank to rank"));
  }
  if (context_->pass != VisitKind::backward) read_.push_back(&parameter);
  if (context_->pass == VisitKind::forward && parameter.requires_grad()) ++parameter.uses;
  return parameter.data;
}

// Registers it in the middle of a run, for which it was not fetched. Not in a leaf: what is read
// there may differ from rank to rank, and all must fetch it.
void Module::register_late(Parameter& parameter) {
  if (context_->leaf != nullptr) return;
  register_external_parameter(*this, parameter);
  context_->hooks.reads_also({*this, context_->pass}, parameter);
}

bool Module::skip_frozen(const Parameter& parameter) {
  if (parameter.requires_grad()) return false;
  ++gradients_given_;
  return true;
}

Values Module::begin_gradient(Parameter& parameter, Buffer& later_use) {
  if (parameter.contributions == parameter.uses) {
    throw Error(
        Code::gradient_state,
        fmt::format("module '{}' gives a gradient for '{}' on rank {}, but all {} use(s) of "
                    "this micro-step have given theirs",
                    name_, parameter.name(), context_->recorder.rank(), parameter.uses),
        "run backward once for every forward");
  }
  if (parameter.gradient == nullptr) {
    parameter.gradient = context_->hooks.gradient_buffer(parameter);
    return parameter.gradient;
  }
  later_use = context_->ledger.allocate(parameter.numel() * size_of(context_->dtype),
                                        Category::reduce_buffers,
                                        parameter.name() + " (gradient of a later use)");
  return later_use.values(context_->dtype);
}

void Module::end_gradient(Parameter& parameter, const Buffer& later_use) {
  ++gradients_given_;
  if (later_use) {
    context_->device.add(parameter.gradient, later_use.values(context_->dtype), parameter.numel());
  }
  ++parameter.contributions;
  if (parameter.contributions == parameter.uses) context_->hooks.gradient_ready(parameter);
}

// A use that gives nothing.
void Module::close_gradient(Parameter& parameter) {
  ++parameter.contributions;
  if (parameter.contributions == parameter.uses) context_->hooks.gradient_ready(parameter);
}

void Module::add_to(Tensor& x, const Tensor& y) const {
  if (!x || !y) return;
  device().add(x.values(), y.values(), x.numel());
  x.set_needs_gradient(x.needs_gradient() || y.needs_gradient());
}

Tensor Module::activation(Shape shape, std::string_view what) const {
  return activation(std::move(shape), what, context_->dtype);
}

Tensor Module::activation(Shape shape, std::string_view what, Dtype dtype) const {
  Tensor tensor(context_->ledger, std::move(shape), dtype, Category::activations,
                fmt::format("{} {}", name_, what), context_->activations);
  // Whoever computes it may have read a trained weight for it.
  tensor.set_needs_gradient(dtype != Dtype::int32);
  return tensor;
}

void register_external_parameter(Module& module, Parameter& parameter) {
  if (contains(module.reads_, parameter)) return;
  module.external_.push_back(&parameter);
  module.reads_.push_back(&parameter);
}

void unregister_external_parameter(Module& module, Parameter& parameter) {
  const auto registered = std::find(module.external_.begin(), module.external_.end(), &parameter);
  if (registered == module.external_.end()) {
    throw Error(Code::usage,
                fmt::format("parameter '{}' is not registered as external with module '{}'",
                            parameter.name(), module.name()),
                "only what register_external_parameter registered can be taken back");
  }
  module.external_.erase(registered);
  std::erase(module.reads_, &parameter);
}

}  // namespace zerolab
