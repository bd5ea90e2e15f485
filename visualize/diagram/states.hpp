#pragma once

#include <span>
#include <string>

#include "visualize/diagram/observed.hpp"

namespace zerolab::diagram {

struct StatesOptions {
  bool parameters = true;  // the machine of parameters
  bool gradients = true;   // the machine of gradients
  bool spec = false;       // what the stage declares and the run never did, too, in grey
  bool times = true;       // without them the picture of a run is always the same
  bool title = true;
};

/// The states that parameters and gradients were in, and the moves between them, as a graph in DOT.
/// An arrow is labelled with its causes, how often each moved, and the mean time in the state
/// before; illegal moves are red. Nodes have the ids "state-AVAILABLE", "gradient-reduced"; edges
/// "edge-NOT_AVAILABLE-INFLIGHT", "gradient-edge-none-partial", with "-illegal" behind those. Their
/// classes are `state` or `move`, with `unused` and `illegal` where that is so.
std::string states_dot(const Observed& run, const StatesOptions& options = {});

/// The same of several runs, one below the other; ids begin with "run0-", "run1-".
std::string states_dot(std::span<const Observed> runs, const StatesOptions& options = {});

/// Two runs in one picture: what only one of them did stands out, with the classes `only-first` and
/// `only-second`; counts and times are those of the first and of the second.
std::string states_diff_dot(const Observed& first, const Observed& second,
                            const StatesOptions& options = {});

}  // namespace zerolab::diagram
