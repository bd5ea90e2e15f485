#pragma once

#include <functional>
#include <optional>
#include <string>

#include "stages/comm/communicator.hpp"
#include "stages/comm/patience.hpp"

namespace zerolab {

/// What one rank does. What the body throws becomes the failure protocol: flush, announce or
/// acknowledge, one message. `on_failure` runs on every rank before it announces or acknowledges
/// (flush logs); `report` runs on the one rank that writes the message. Anything thrown that is not
/// an Error is reported as Code::internal.
struct RankProgram {
  std::function<void(Communicator&)> body;
  std::function<void(const Communicator&)> on_failure = {};
  std::function<void(const Communicator&, const Error&)> report = {};
};

/// What is no Error, as one: Code::internal.
Error internal_error(const std::string& what);

/// Runs the program on `ranks` threads of this process; returns the exit status of the job: 0, or
/// that of the error that was reported. If after a failure a rank does not come to an end (it
/// computes for ever), the process is ended with that status: a thread cannot be stopped.
int run_threads(int ranks, const std::function<RankProgram(int rank)>& program,
                const Patience& patience = {});

/// The place mpirun gave to this process, from its environment; nothing if mpirun did not start it.
/// MPI need not be initialised.
struct LaunchPlace {
  int rank = 0;
  int size = 1;
};
std::optional<LaunchPlace> launch_place();
inline bool launched_by_mpi() { return launch_place().has_value(); }

/// Initialises MPI, runs the program on this process's rank, finalises and returns 0. If the job
/// fails it does not return: it ends through MPI_Abort with the exit status of the error that was
/// reported. Throws Error (Code::mpi_singletons, on every process: let launch_place().rank 0 write
/// it) when mpirun started several processes but MPI says that there is one, and
/// Code::mpi_thread_level.
int run_mpi(const std::function<RankProgram(int rank)>& program, const Patience& patience = {});

}  // namespace zerolab
