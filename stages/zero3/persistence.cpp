#include "stages/zero3/persistence.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace zerolab {

std::vector<bool> persistent_parameters(const std::vector<Index>& elements,
                                        const ZeroSettings& settings) {
  std::vector<bool> persistent;
  Index room = settings.model_persistence_threshold;
  for (const Index size : elements) {
    const Index most = settings.param_persistence_threshold;
    persistent.push_back(most > 0 && size <= most && size <= room);
    if (persistent.back()) room -= size;
  }
  return persistent;
}

std::string why_nothing_is_released(const std::vector<Index>& elements,
                                    const ZeroSettings& settings) {
  if (settings.stage != 3 || elements.empty()) return {};
  const std::vector<bool> persistent = persistent_parameters(elements, settings);
  if (std::all_of(persistent.begin(), persistent.end(), [](bool each) { return each; })) {
    return fmt::format(
        "nothing will ever be released: no parameter has more than {} elements, and all that have "
        "at most {} stay whole (zero_optimization.stage3_param_persistence_threshold)",
        *std::max_element(elements.begin(), elements.end()), settings.param_persistence_threshold);
  }
  // Between the two uses of a parameter in a pass everything else is read at most twice.
  const Index model = std::accumulate(elements.begin(), elements.end(), Index{0});
  if (settings.max_reuse_distance >= 2 * model) {
    return fmt::format(
        "nothing will ever be released inside a pass: the whole model is {} elements, and what is "
        "read again within {} stays (zero_optimization.stage3_max_reuse_distance)",
        model, settings.max_reuse_distance);
  }
  return {};
}

}  // namespace zerolab
