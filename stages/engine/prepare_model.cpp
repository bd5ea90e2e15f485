#include "stages/engine/prepare_model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "stages/base/error.hpp"
#include "stages/base/nearest.hpp"

namespace zerolab {
namespace {

std::vector<Module*> all_modules(Module& root) {
  std::vector<Module*> modules{&root};
  for (std::size_t i = 0; i < modules.size(); ++i) {
    const std::vector<Module*> children = modules[i]->children();
    modules.insert(modules.end(), children.begin(), children.end());
  }
  return modules;
}

bool ends_with(const std::string& name, const std::string& end) {
  return name.size() >= end.size() && name.substr(name.size() - end.size()) == end;
}

using Matches = std::function<bool(const Module&, const std::string& wanted)>;

// What names nothing is a misspelling, and the model would silently run without that leaf.
void make_leaves(const std::vector<Module*>& modules, std::string_view key,
                 const std::vector<std::string>& wanted, const Matches& matches,
                 const std::vector<std::string>& known) {
  for (const std::string& each : wanted) {
    bool found = false;
    for (Module* module : modules) {
      if (!matches(*module, each)) continue;
      module->make_leaf();
      found = true;
    }
    if (found) continue;
    throw Error(Code::config_value,
                fmt::format("zero_optimization.leaf_module.{} has '{}', which is no module of this "
                            "model{}",
                            key, each, did_you_mean(each, known)),
                "the span events of a run's log name its modules");
  }
}

}  // namespace

void prepare_model(Model& model, const Settings& settings) {
  model.parameters().seal();

  const std::vector<Module*> modules = all_modules(model.root());
  std::vector<std::string> names, classes;
  for (const Module* module : modules) {
    names.push_back(module->name());
    classes.push_back(module->class_name());
  }
  const LeafModules& leaves = settings.zero.leaf_modules;
  make_leaves(
      modules, "classes", leaves.classes,
      [](const Module& module, const std::string& wanted) { return module.class_name() == wanted; },
      classes);
  make_leaves(
      modules, "names", leaves.names,
      [](const Module& module, const std::string& wanted) { return module.name() == wanted; },
      names);
  make_leaves(
      modules, "name_suffixes", leaves.name_suffixes,
      [](const Module& module, const std::string& wanted) {
        return ends_with(module.name(), wanted);
      },
      names);

  if (!settings.activation_checkpointing) return;
  for (Module* segment : model.root().segments()) segment->recompute_in_backward();
}

void refuse_nothing_to_train(const ParameterSet& parameters) {
  if (parameters.numel() == 0 || parameters.trainable_numel() > 0) return;
  throw Error(Code::usage, "every parameter of the model is frozen: there is nothing to train",
              "freeze less of it");
}

}  // namespace zerolab
