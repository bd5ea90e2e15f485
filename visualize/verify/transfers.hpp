#pragma once

#include <optional>
#include <string>
#include <vector>

#include "visualize/verify/catalogue.hpp"

namespace zerolab::verify {

/// Parameters (or their gradients) that are on their way, and the collectives that move them. Which
/// those are says a collective's owner (docs/log-format.md): "a", or "a .. c (3 parameters)" for
/// three that were sent off one after the other.
class Transfers {
 public:
  explicit Transfers(const Catalogue& catalogue) : catalogue_(catalogue) {}

  void begin(std::size_t parameter);

  /// The collective of this owner is over: whom it has moved; nobody when none of them is on its
  /// way.
  std::vector<std::size_t> moved(const std::string& owner, double finished);
  /// It has moved everybody who is on his way.
  std::vector<std::size_t> moved_all(double finished);

  /// The parameter is there: when its collective was over, if there was one.
  std::optional<double> end(std::size_t parameter);

 private:
  struct Traveller {
    std::size_t parameter;
    std::optional<double> finished = std::nullopt;
  };
  std::vector<std::size_t> move(std::size_t first, std::size_t count, double finished);

  const Catalogue& catalogue_;
  std::vector<Traveller> travellers_;  // in the order in which they were sent off
};

}  // namespace zerolab::verify
