#pragma once

#include <optional>
#include <string>
#include <vector>

#include "visualize/log/run_folder.hpp"

namespace zerolab::diagram {

struct SequenceOptions {
  log::Count rank = 0;
  std::optional<log::Count> step = std::nullopt;  // without: the last whole one
  bool times = true;  // without them the picture of a run is always the same, if nothing overlaps
};

/// What a rank does in one step, downwards: the modules that it runs, and the collectives that go
/// out to the other ranks and come back, with a bar for as long as each is under way. Runs stand
/// side by side. A graph in DOT. Throws log::Unreadable when a log has no such rank or step.
std::string sequence_dot(const std::vector<log::RunFolder>& runs,
                         const SequenceOptions& options = {});

}  // namespace zerolab::diagram
