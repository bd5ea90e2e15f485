#include "stages/base/nearest.hpp"

#include <algorithm>

namespace zerolab {

Index edit_distance(std::string_view a, std::string_view b) {
  const std::size_t width = b.size() + 1;
  std::vector<Index> table((a.size() + 1) * width);
  const auto at = [&](std::size_t i, std::size_t j) -> Index& { return table[i * width + j]; };
  for (std::size_t i = 0; i <= a.size(); ++i) at(i, 0) = static_cast<Index>(i);
  for (std::size_t j = 0; j <= b.size(); ++j) at(0, j) = static_cast<Index>(j);
  for (std::size_t i = 1; i <= a.size(); ++i) {
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const Index change = at(i - 1, j - 1) + (a[i - 1] == b[j - 1] ? 0 : 1);
      at(i, j) = std::min({at(i - 1, j) + 1, at(i, j - 1) + 1, change});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        at(i, j) = std::min(at(i, j), at(i - 2, j - 2) + 1);
      }
    }
  }
  return table.back();
}

std::string nearest(std::string_view given, const std::vector<std::string>& known) {
  // A third of the letters may be wrong: beyond that a guess is noise.
  Index best = std::max<Index>(1, static_cast<Index>(given.size()) / 3) + 1;
  std::string found;
  for (const std::string& name : known) {
    const Index distance = edit_distance(given, name);
    if (distance < best) {
      best = distance;
      found = name;
    }
  }
  return found;
}

std::string did_you_mean(std::string_view given, const std::vector<std::string>& known) {
  const std::string found = nearest(given, known);
  return found.empty() ? "" : "; did you mean " + found + "?";
}

}  // namespace zerolab
