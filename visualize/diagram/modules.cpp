#include "visualize/diagram/modules.hpp"

#include <fmt/format.h>

#include <map>

#include "visualize/diagram/dot.hpp"
#include "visualize/diagram/text.hpp"

namespace zerolab::diagram {
namespace {

using log::Count;

/// Modules and parameters by name, as far as run.json has them.
struct Index {
  explicit Index(const log::Run& run) {
    for (std::size_t i = 0; i < run.modules.size(); ++i) {
      modules[run.modules[i].name] = i;
      for (const std::string& name : run.modules[i].parameters) owners.emplace(name, i);
    }
    for (const log::Parameter& each : run.parameters) parameters[each.name] = &each;
  }

  std::map<std::string, std::size_t> modules;
  std::map<std::string, std::size_t> owners;  // of parameters
  std::map<std::string, const log::Parameter*> parameters;
};

std::set<std::string> parameters_of(const log::Run& run, const Index& index,
                                    const std::string& module) {
  std::set<std::string> parameters, seen{module};
  std::vector<std::string> left{module};
  while (!left.empty()) {
    const auto found = index.modules.find(left.back());
    left.pop_back();
    if (found == index.modules.end()) continue;
    const log::Module& here = run.modules[found->second];
    parameters.insert(here.parameters.begin(), here.parameters.end());
    parameters.insert(here.external.begin(), here.external.end());
    for (const std::string& child : here.children) {
      if (seen.insert(child).second) left.push_back(child);
    }
  }
  return parameters;
}

/// A name without that of the module it belongs to.
std::string below(const std::string& name, const std::string& module) {
  return name.starts_with(module + ".") ? name.substr(module.size() + 1) : name;
}

std::string row(const std::string& left, const std::string& right) {
  return fmt::format("<tr><td align=\"left\">{}</td><td align=\"right\">{}</td></tr>", left, right);
}

std::string label_of(const log::Module& module, const log::Run& run, const Index& index) {
  Count elements = 0;
  for (const std::string& name : parameters_of(run, index, module.name)) {
    const auto found = index.parameters.find(name);
    if (found != index.parameters.end()) elements += found->second->numel;
  }
  std::string text =
      "<table border=\"0\" cellborder=\"0\" cellspacing=\"0\" cellpadding=\"1\">" +
      row(fmt::format("<b>{}</b>", label_text(module.name)), "") +
      row(small(label_text(module.class_name) + (module.leaf ? ", leaf" : "")),
          elements > 0 && module.parameters.empty() ? small(with_commas(elements)) : " ");
  for (const std::string& name : module.parameters) {
    const auto found = index.parameters.find(name);
    if (found == index.parameters.end()) continue;
    const log::Parameter& parameter = *found->second;
    text +=
        row(small(label_text(below(name, module.name)) + (parameter.trainable ? "" : " (frozen)") +
                      (parameter.persistent ? " (persists)" : ""),
                  kInk),
            small(with_commas(parameter.numel), kInk));
  }
  for (const std::string& name : module.external) {
    text += row(small("reads " + label_text(name), kBlue), " ");
  }
  return text + "</table>";
}

}  // namespace

std::string modules_dot(const log::Run& run) {
  constexpr std::size_t kMost = 2000;
  if (run.modules.size() > kMost) {
    throw log::Unreadable(
        fmt::format("the run has {} modules, too many for a picture", run.modules.size()),
        fmt::format("draw a model of up to {}", kMost));
  }
  const Index index(run);
  Heading heading{
      .title = fmt::format("{} modules, {} parameters", run.modules.size(), run.parameters.size()),
      .caption = {"numbers are elements, of modules without parameters of their own "
                  "those below them"},
      .notes = {}};
  std::string nodes, tree, external;
  for (std::size_t i = 0; i < run.modules.size(); ++i) {
    const log::Module& module = run.modules[i];
    const bool owns = !module.parameters.empty();
    nodes += fmt::format(
        "  m{} [id=\"module-{}\", class=\"module\", shape=box, style=\"rounded,filled\", "
        "fillcolor=\"{}\", color=\"{}\", margin=\"0.08,0.03\"{}, label=<{}>]\n",
        i, i, owns ? "#EAF2F8" : "white", kMuted, module.leaf ? ", peripheries=2" : "",
        label_of(module, run, index));
    for (const std::string& child : module.children) {
      const auto found = index.modules.find(child);
      if (found != index.modules.end()) {
        tree += fmt::format("  m{} -> m{} [color=\"{}\", arrowsize=0.6, headport=w, tailport=e]\n",
                            i, found->second, kMuted);
      }
    }
    for (const std::string& name : module.external) {
      const auto found = index.owners.find(name);
      if (found == index.owners.end()) continue;
      // The box says what is read: libgvc frees twice what belongs to labels of such arrows.
      external += fmt::format(
          "  m{} -> m{} [class=\"external\", style=dashed, color=\"{}\", constraint=false, "
          "arrowsize=0.7]\n",
          i, found->second, kBlue);
    }
  }
  if (!external.empty()) {
    heading.caption.emplace_back("dashed: a module reads a parameter that another one owns");
  }
  return graph_begin("rankdir=LR, ordering=out, nodesep=0.12, ranksep=0.5", heading) + nodes +
         tree + external + "}\n";
}

std::set<std::string> parameters_of(const log::Run& run, const std::string& module) {
  return parameters_of(run, Index(run), module);
}

}  // namespace zerolab::diagram
