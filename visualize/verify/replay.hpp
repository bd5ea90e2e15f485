#pragma once

#include <string>
#include <vector>

#include "visualize/log/run_folder.hpp"
#include "visualize/verify/findings.hpp"

namespace zerolab::verify {

/// What came of replaying the logs of one run.
struct Verdict {
  log::Count ranks = 0, events = 0;  // replayed
  log::Count steps = 0;              // of rank 0
  std::vector<std::string> remarks;  // what limits the judgement
  Violations violations;
};

/// Replays the events of all ranks against the state machine, the ledger and the collectives. A run
/// that failed, or whose logs end in the middle, is judged as far as it goes. Throws
/// log::Unreadable when there are no events to replay.
Verdict replay(const log::RunFolder& folder);

}  // namespace zerolab::verify
