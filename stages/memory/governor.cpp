#include "stages/memory/governor.hpp"

#include <fmt/format.h>

namespace zerolab {

std::string text_of(const Setting& setting, Index value) {
  if (setting.is_switch) return value == 0 ? "false" : "true";
  return fmt::to_string(value);
}

Index Proportional::bytes_at(std::size_t /*index*/, Index value, const Held& held) const {
  return proportional_bytes(held.bytes, value, setting_.value);
}

// In two parts, so that no product is larger than what is held or than the square of a setting.
Index proportional_bytes(Index bytes, Index value, Index whole) {
  return bytes / whole * value + ceil_div(bytes % whole * value, whole);
}

std::optional<Index> nearest_that_fits(const Setting& setting,
                                       const std::function<bool(Index value)>& fits) {
  Index too_much = setting.value;
  Index enough = setting.extreme;
  if (enough == too_much || !fits(enough)) return std::nullopt;
  while (enough - too_much > 1 || too_much - enough > 1) {
    const Index middle = too_much + (enough - too_much) / 2;
    (fits(middle) ? enough : too_much) = middle;
  }
  return enough;
}

}  // namespace zerolab
