#pragma once

#include <optional>
#include <string>
#include <vector>

#include "visualize/verify/catalogue.hpp"
#include "visualize/verify/findings.hpp"
#include "visualize/verify/reference.hpp"

namespace zerolab::verify {

/// Parameters (or their gradients) that are on their way, and the collectives that move them. Which
/// those are says a collective's owner (docs/log-format.md): "a", or "a .. c (3 parameters)" for
/// three that were sent off one after the other.
class Transfers {
 public:
  /// What is reported of a parameter that arrives without its collective, or before it is over.
  struct Kinds {
    Kind without, too_early;
  };
  Transfers(const Catalogue& catalogue, const Reporter& report, Kinds kinds)
      : catalogue_(catalogue), report_(report), kinds_(kinds), padding_(catalogue.run()) {}

  void begin(std::size_t parameter);
  /// A collective is over that moves those whom its owner names,
  void moved(const log::Event& event, const log::CommEvent& comm);
  /// or everybody who is on his way, in one flat buffer.
  void moved_all(const log::Event& event, const log::CommEvent& comm);
  void end(const log::Event& event, std::size_t parameter);

 private:
  struct Traveller {
    std::size_t parameter;
    std::optional<double> finished = std::nullopt;  // when its collective was over
  };
  using Travellers = std::vector<Traveller>;

  Travellers::iterator first_of(const std::string& owner, std::size_t count);
  /// Nothing is expected where nobody is on his way.
  void expect_elements(const log::Event& event, const log::CommEvent& comm,
                       std::optional<Count> expected) const;

  const Catalogue& catalogue_;
  const Reporter& report_;
  Kinds kinds_;
  Padding padding_;
  Travellers travellers_;  // in the order in which they were sent off
};

}  // namespace zerolab::verify
