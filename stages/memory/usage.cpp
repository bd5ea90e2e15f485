#include "stages/memory/usage.hpp"

#include <fmt/format.h>

namespace zerolab {

std::string_view name_of(Category category) {
  switch (category) {
    case Category::parameters:
      return "parameters";
    case Category::gradients:
      return "gradients";
    case Category::optimizer:
      return "optimizer";
    case Category::activations:
      return "activations";
    case Category::gather_buffers:
      return "gather_buffers";
    case Category::reduce_buffers:
      return "reduce_buffers";
    case Category::workspace:
      return "workspace";
    case Category::checkpoint:
      return "checkpoint";
  }
  return "?";
}

Index Usage::total() const {
  Index sum = 0;
  for (const Index bytes : by_category) sum += bytes;
  return sum;
}

std::string human_bytes(Index bytes) {
  constexpr std::array kUnits{"B", "KiB", "MiB", "GiB", "TiB"};
  if (bytes < 1024) return fmt::format("{} B", bytes);
  auto value = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (value >= 1024 && unit + 1 < kUnits.size()) {
    value /= 1024;
    ++unit;
  }
  return fmt::format("{:.{}f} {}", value, value < 10 ? 2 : value < 100 ? 1 : 0, kUnits[unit]);
}

}  // namespace zerolab
