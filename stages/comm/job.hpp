#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "stages/comm/communicator.hpp"

namespace zerolab {

/// Runs the body of one rank and turns what it throws into the failure protocol: flush, announce or
/// acknowledge, one message. `on_failure` runs on every rank before it announces or acknowledges
/// (flush logs); `report` runs on the one rank that writes the message.
struct RankProgram {
  std::function<void(Communicator&)> body;
  std::function<void(const Communicator&)> on_failure = {};
  std::function<void(const Communicator&, const Error&)> report = {};
};

/// Runs the program on `ranks` threads of this process; returns the exit status of the job.
int run_threads(int ranks, const std::function<RankProgram(int rank)>& program);

/// True when mpirun started this process (its environment says so).
bool launched_by_mpi();

/// Initialises MPI, runs the program on this process's rank and finalises. On failure the job ends
/// through MPI_Abort with the error's exit status. Throws Error (Code::mpi_singletons) when mpirun
/// started several processes but MPI says that there is one, and Code::mpi_thread_level.
int run_mpi(const std::function<RankProgram(int rank)>& program);

}  // namespace zerolab
