#pragma once

#include "stages/comm/job.hpp"

namespace zerolab {

/// How one rank's program ended.
struct RankOutcome {
  int status = 0;         // 0, or the exit status of its error
  bool reported = false;  // this rank wrote the message of the job
};

/// Runs the body, then waits until every rank's body is done; on failure goes through the failure
/// protocol. Does not throw.
RankOutcome run_rank(Communicator& communicator, const RankProgram& program);

}  // namespace zerolab
