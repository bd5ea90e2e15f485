#pragma once

#include <memory>
#include <string>

#include "tests/support/chain.hpp"
#include "tests/support/layers.hpp"

namespace zerolab::test {

/// Ten layers 4 -> 4 -> 2 -> 2 ... -> 2 -> 4 -> 4, the last one's weight that of the first.
inline Links tiny_tied(ParameterSet& parameters) {
  Links links{embedding(parameters, 4, 4), linear(parameters, "first", 4, 4),
              linear(parameters, "narrow", 4, 2)};
  for (int i = 0; i < 6; ++i) {
    links.push_back(linear(parameters, "small." + std::to_string(i), 2, 2));
  }
  links.push_back(linear(parameters, "widen", 2, 4));
  Parameter& table = parameters.at("first.weight");
  links.push_back(std::make_shared<TiedHead>("last", table));
  register_external_parameter(*links.back(), table);
  return links;
}

}  // namespace zerolab::test
