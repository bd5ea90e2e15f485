#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lab/bench/ratio.hpp"

namespace zerolab::bench {

/// What a figure should be. A bench is no test: whether it is met is said, and changes nothing.
struct Target {
  enum class Kind { at_most, at_least };
  Kind kind = Kind::at_most;
  double value = 0;
};

/// One line of a topic's table.
struct Figure {
  std::string what;
  std::string value;        // "1.12"
  std::string spread = {};  // "1.10 to 1.15": the quartiles
  std::string note = {};    // beside it, such as the seconds behind a ratio
  std::string target = {};  // "at most 1.25"
  std::string met = {};     // "yes" or "no"
};

Figure ratio_figure(std::string what, const Spread& ratio, std::optional<Target> target = {},
                    std::string note = {});
/// The same for a share, as percents.
Figure percent_figure(std::string what, const Spread& share, std::optional<Target> target = {},
                      std::string note = {});

/// The table of one topic, under its title.
std::string draw_figures(const std::string& title, const std::vector<Figure>& figures);

}  // namespace zerolab::bench
