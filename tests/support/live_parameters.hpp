#pragma once

#include <algorithm>
#include <map>
#include <string>

#include "stages/model/module.hpp"
#include "stages/trace/events.hpp"

namespace zerolab::test {

/// Follows the parameter events of one rank: how much is whole or on its way, in elements.
class LiveParameters {
 public:
  /// Sizes come from a model like the one that runs.
  explicit LiveParameters(const ParameterSet& parameters) {
    for (const Parameter& parameter : parameters) {
      known_[parameter.name()].elements = parameter.numel();
    }
  }

  void see(const Event& event) {
    const auto* param = std::get_if<ParamEvent>(&event);
    if (param == nullptr) return;
    Known& known = known_.find(param->parameter)->second;
    known.live = param->to != "NOT_AVAILABLE";
    known.coming = param->to == "INFLIGHT";
    Index live = 0;
    Index coming = 0;
    for (const auto& [name, each] : known_) {
      if (each.live) live += each.elements;
      if (each.coming) coming += each.elements;
    }
    live_ = live;
    most_ = std::max(most_, live);
    most_coming_ = std::max(most_coming_, coming);
  }

  Index live() const { return live_; }
  Index most() const { return most_; }
  Index most_coming() const { return most_coming_; }
  void forget_most() { most_ = most_coming_ = 0; }

 private:
  struct Known {
    Index elements = 0;
    bool live = false, coming = false;
  };
  std::map<std::string, Known, std::less<>> known_;
  Index live_ = 0, most_ = 0, most_coming_ = 0;
};

}  // namespace zerolab::test
