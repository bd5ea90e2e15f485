#include "lab/failures/mistakes/mistake.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "stages/base/nearest.hpp"

namespace zerolab {

std::vector<Mistake> mistakes() {
  std::vector<Mistake> all;
  for (const auto& group : {mistakes_in_models, mistakes_between_steps, mistakes_in_stages,
                            mistakes_in_gradients, mistakes_in_ranks, mistakes_in_saves}) {
    std::vector<Mistake> more = group();
    std::move(more.begin(), more.end(), std::back_inserter(all));
  }
  return all;
}

Mistake find_mistake(const std::string& name, const std::string& flag) {
  const std::vector<Mistake> all = mistakes();
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const Mistake& each) { return each.name == name; });
  if (found == all.end()) {
    std::vector<std::string> names;
    names.reserve(all.size());
    for (const Mistake& each : all) names.push_back(each.name);
    throw Error(
        Code::usage,
        fmt::format("{} {} is no deliberate mistake{}", flag, name, did_you_mean(name, names)),
        "zerolab fail --list tells which there are, and what comes of them");
  }
  if (flag == "--mend" && !found->mend) {
    throw Error(Code::usage,
                fmt::format("--mend {}: without the mistake nothing is left of it", name),
                "leave the flag out");
  }
  return *found;
}

}  // namespace zerolab
