#pragma once

#include <functional>
#include <map>

#include "stages/comm/communicator.hpp"

namespace zerolab::bench {

/// The ranks of a bench as one of them sees them: beside the world of all there are smaller ones of
/// the first ranks, so that 1, 2 and 4 ranks can be measured in turn in one run.
struct Worlds {
  int rank = 0;
  int size = 1;
  std::string kind;                    // "threads", "mpi (MPICH 4.0.2)"
  std::map<int, Communicator*> first;  // by number of ranks: 1, 2, 4; where this rank takes part
  std::function<void()> meet;          // returns when all ranks are here; who waits leaves the
                                       // cores to those being measured
};

/// Runs the body on every rank; the exit status.
int run_on_threads(int ranks, const std::function<void(Worlds&)>& body);
/// The same under mpirun, on this process.
int run_on_mpi(const std::function<void(Worlds&)>& body);

}  // namespace zerolab::bench
