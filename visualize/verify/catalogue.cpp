#include "visualize/verify/catalogue.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "visualize/verify/findings.hpp"

namespace zerolab::verify {
namespace {

using Places = std::unordered_map<std::string, std::size_t>;

template <typename Named>
Places places_of(const std::vector<Named>& list) {
  Places result;
  for (std::size_t i = 0; i < list.size(); ++i) result.emplace(list[i].name, i);
  return result;
}

std::optional<std::size_t> find(const Places& places, const std::string& name) {
  const auto found = places.find(name);
  if (found == places.end()) return std::nullopt;
  return found->second;
}

}  // namespace

Catalogue::Catalogue(const log::RunFolder& folder)
    : run_(folder.run), parameters_(places_of(run_.parameters)), modules_(places_of(run_.modules)) {
  const auto expect = [&](const Places& places, const std::vector<std::string>& names,
                          const log::Module& module) {
    for (const std::string& name : names) {
      if (places.count(name) > 0) continue;
      throw log::Unreadable(
          fmt::format("{} has a module {} that names {}, which it does not list",
                      (folder.path / "run.json").string(), in_quotes(module.name), in_quotes(name)),
          "docs/log-format.md says what stands under modules");
    }
  };
  for (const log::Module& module : run_.modules) {
    expect(modules_, module.children, module);
    expect(parameters_, module.parameters, module);
    expect(parameters_, module.external, module);
  }
  for (std::size_t i = 0; i < run_.modules.size(); ++i) {
    std::vector<bool> seen(run_.modules.size());
    collect(i, seen, reads_.emplace_back());
  }
}

std::optional<std::size_t> Catalogue::parameter(const std::string& name) const {
  return find(parameters_, name);
}

std::optional<std::size_t> Catalogue::module(const std::string& name) const {
  return find(modules_, name);
}

void Catalogue::collect(std::size_t module, std::vector<bool>& seen,
                        std::vector<std::size_t>& reads) const {
  const log::Module& here = run_.modules[module];
  const bool outermost = std::count(seen.begin(), seen.end(), true) == 0;
  if (seen[module]) return;
  seen[module] = true;
  for (const auto* names : {&here.parameters, &here.external}) {
    for (const std::string& name : *names) {
      const std::size_t place = parameters_.at(name);
      if (std::find(reads.begin(), reads.end(), place) == reads.end()) reads.push_back(place);
    }
  }
  if (outermost && !here.leaf) return;
  for (const std::string& child : here.children) collect(modules_.at(child), seen, reads);
}

}  // namespace zerolab::verify
