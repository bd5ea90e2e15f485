#include "stages/model/module.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "stages/base/error.hpp"
#include "stages/model/parameter_state.hpp"

namespace zerolab {

std::string_view name_of(VisitKind kind) {
  switch (kind) {
    case VisitKind::forward:
      return "forward";
    case VisitKind::backward:
      return "backward";
    case VisitKind::evaluate:
      return "evaluate";
  }
  return "?";
}

Parameter& ParameterSet::add(std::string name, Shape shape, Initial initial) {
  return parameters_.emplace_back(std::move(name), static_cast<Index>(parameters_.size()),
                                  std::move(shape), initial);
}

Parameter& ParameterSet::at(std::string_view name) {
  for (Parameter& parameter : parameters_) {
    if (parameter.name() == name) return parameter;
  }
  throw Error(Code::usage, fmt::format("the model has no parameter '{}'", name),
              "run.json lists the parameters by name");
}

std::vector<Index> ParameterSet::sizes() const {
  std::vector<Index> result;
  for (const Parameter& parameter : parameters_) result.push_back(parameter.numel());
  return result;
}

Index ParameterSet::numel() const {
  Index sum = 0;
  for (const Parameter& parameter : parameters_) sum += parameter.numel();
  return sum;
}

// A run that ends by an exception ends all the same: what was gathered for it is let go.
template <typename Run>
Tensor Module::between_hooks(const Visit& visit, Run run) {
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
  weights_read_ = 0;
  Tensor output = between_hooks({*this, context_->pass}, [&] { return do_forward(input); });
  if (keeps()) reads_to_undo_.push_back(weights_read_);
  return output;
}

Tensor Module::backward(const Tensor& output_gradient) {
  if (reads_to_undo_.empty()) {
    throw Error(Code::gradient_state,
                fmt::format("module '{}' on rank {} runs backward more often than forward", name_,
                            context_->recorder.rank()),
                "run backward once for every forward");
  }
  const Index owed = reads_to_undo_.back();
  reads_to_undo_.pop_back();
  gradients_given_ = 0;
  Tensor input_gradient =
      between_hooks({*this, VisitKind::backward}, [&] { return do_backward(output_gradient); });
  if (gradients_given_ != owed) {
    throw Error(Code::gradient_state,
                fmt::format("module '{}' on rank {} read {} weight(s) in forward and gave {} "
                            "gradient(s) in backward",
                            name_, context_->recorder.rank(), owed, gradients_given_),
                "call add_gradient in backward once for every weight() in forward; a weight "
                "without its gradient would be taken for one that the loss does not depend on");
  }
  return input_gradient;
}

Module* Module::find(std::string_view name) {
  if (name_ == name) return this;
  for (Module* child : children_) {
    if (Module* found = child->find(name)) return found;
  }
  return nullptr;
}

bool Module::borrows(const Parameter& parameter) const {
  return std::find(external_.begin(), external_.end(), &parameter) != external_.end();
}

void Module::attach(ModelContext& context) {
  context_ = &context;
  for (Module* child : children_) child->attach(context);
}

Parameter& Module::own(Parameter& parameter) {
  reads_.push_back(&parameter);
  return parameter;
}

const float* Module::weight(Parameter& parameter) {
  if (parameter.status() != Status::available) {
    const bool declared = std::find(reads_.begin(), reads_.end(), &parameter) != reads_.end();
    throw Error(
        Code::parameter_not_available,
        fmt::format("module '{}' on rank {} reads parameter '{}', which is {} (step {}, {})", name_,
                    context_->recorder.rank(), parameter.name(), name_of(parameter.status()),
                    context_->recorder.step(), name_of(context_->recorder.phase())),
        declared ? "run the module through forward() or backward(): their hooks gather it first"
                 : fmt::format("the module does not own it: call "
                               "register_external_parameter({}, {}) after building the model, so "
                               "that stage 3 gathers it before the module runs",
                               name_, parameter.name()));
  }
  if (context_->pass == VisitKind::forward) {
    ++parameter.uses;
    ++weights_read_;
  }
  return parameter.data;
}

float* Module::begin_gradient(Parameter& parameter, Buffer& later_use) {
  if (parameter.contributions == parameter.uses) {
    throw Error(
        Code::gradient_state,
        fmt::format("module '{}' gives a gradient for '{}' on rank {}, but all {} use(s) of "
                    "this micro-step have given theirs",
                    name_, parameter.name(), context_->recorder.rank(), parameter.uses),
        "run backward once for every forward");
  }
  if (parameter.contributions++ == 0) {
    parameter.gradient = context_->hooks.gradient_buffer(parameter);
    return parameter.gradient;
  }
  later_use =
      context_->ledger.allocate(parameter.numel() * size_of(Dtype::fp32), Category::reduce_buffers,
                                parameter.name() + " (gradient of a later use)");
  return later_use.floats();
}

void Module::end_gradient(Parameter& parameter, const Buffer& later_use) {
  ++gradients_given_;
  if (later_use) {
    context_->device.add(parameter.gradient, later_use.floats(), parameter.numel());
  }
  if (parameter.contributions == parameter.uses) context_->hooks.gradient_ready(parameter);
}

Tensor Module::activation(Shape shape, std::string_view what, Dtype dtype) const {
  return Tensor(context_->ledger, std::move(shape), dtype, Category::activations,
                fmt::format("{} {}", name_, what), context_->micro_batch);
}

void register_external_parameter(Module& module, Parameter& parameter) {
  if (std::find(module.reads_.begin(), module.reads_.end(), &parameter) != module.reads_.end()) {
    return;  // it reads it already
  }
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
