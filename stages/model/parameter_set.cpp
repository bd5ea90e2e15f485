#include "stages/model/parameter_set.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "stages/base/error.hpp"
#include "stages/base/nearest.hpp"

namespace zerolab {
namespace {

constexpr std::string_view kWhereNamesAre = "run.json lists the parameters by name";

Index sum(const std::vector<Index>& sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), Index{0});
}

// "blocks.1" and "blocks.1.norm1" are above "blocks.1.norm1.weight".
bool is_or_contains(std::string_view name, std::string_view parameter) {
  return parameter.substr(0, name.size()) == name &&
         (parameter.size() == name.size() || parameter[name.size()] == '.');
}

}  // namespace

Parameter& ParameterSet::add(std::string name, Shape shape, Initial initial) {
  const auto same = [&name](const Parameter& each) { return each.name() == name; };
  if (std::any_of(parameters_.begin(), parameters_.end(), same)) {
    throw Error(Code::usage, fmt::format("the model has two parameters '{}'", name),
                "give every module a name of its own; to share a weight, share its Parameter");
  }
  return parameters_.emplace_back(std::move(name), static_cast<Index>(parameters_.size()),
                                  std::move(shape), initial);
}

Parameter& ParameterSet::at(std::string_view name) {
  for (Parameter& parameter : parameters_) {
    if (parameter.name() == name) return parameter;
  }
  throw Error(Code::usage, fmt::format("the model has no parameter '{}'", name),
              std::string(kWhereNamesAre));
}

void ParameterSet::freeze(std::string_view name) {
  if (sealed_) {
    throw Error(Code::usage,
                fmt::format("'{}' cannot be frozen any more: its gradient and moments have their "
                            "memory already",
                            name),
                "freeze it after building the model, before there is an engine");
  }
  bool found = false;
  std::vector<std::string> names;
  for (Parameter& parameter : parameters_) {
    for (std::size_t end = parameter.name().size(); end != std::string::npos && end > 0;
         end = parameter.name().rfind('.', end - 1)) {
      names.push_back(parameter.name().substr(0, end));
    }
    if (!is_or_contains(name, parameter.name())) continue;
    parameter.requires_grad_ = false;
    found = true;
  }
  if (found) return;
  throw Error(Code::usage,
              fmt::format("the model has neither a parameter nor a module '{}' to freeze{}", name,
                          did_you_mean(std::string(name), names)),
              std::string(kWhereNamesAre));
}

std::vector<Index> ParameterSet::sizes() const {
  std::vector<Index> result;
  for (const Parameter& parameter : parameters_) result.push_back(parameter.numel());
  return result;
}

std::vector<Index> ParameterSet::sizes_where(bool requires_grad) const {
  std::vector<Index> result;
  for (const Parameter& each : parameters_) {
    result.push_back(each.requires_grad() == requires_grad ? each.numel() : 0);
  }
  return result;
}

Index ParameterSet::numel() const { return sum(sizes()); }

Index ParameterSet::trainable_numel() const { return sum(trainable_sizes()); }

}  // namespace zerolab
