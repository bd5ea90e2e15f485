#include "stages/checkpoint/tied.hpp"

#include <vector>

namespace zerolab {

std::map<std::string, std::string> tied_names(Model& model) {
  std::map<std::string, std::string> names;
  std::vector<Module*> modules{&model.root()};
  for (std::size_t i = 0; i < modules.size(); ++i) {
    const Module& module = *modules[i];
    for (Module* child : module.children()) modules.push_back(child);
    for (const Parameter* parameter : module.external_parameters()) {
      const std::string& name = parameter->name();
      const std::size_t dot = name.rfind('.');
      names[module.name() + "." + (dot == std::string::npos ? name : name.substr(dot + 1))] = name;
    }
  }
  return names;
}

}  // namespace zerolab
