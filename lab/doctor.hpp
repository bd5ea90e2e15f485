#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "lab/table.hpp"
#include "stages/base/types.hpp"

namespace zerolab {

/// What this machine and this build have to offer.
struct Machine {
  std::string compiler;         // "GCC 12.2.0"
  std::string onednn;           // "2.6.3"
  std::string instruction_set;  // what oneDNN uses, "AVX-512 with bf16"
  std::string processor;
  int cores = 0;            // that this process may use
  Index memory = 0;         // bytes
  Index shared_memory = 0;  // bytes free in /dev/shm, which ranks on one machine talk through
  std::string mpi;          // "MPICH 4.0.2"
  std::string mpi_device;   // "ch4:ucx"
  std::string mpi_threads;  // "multiple"
  bool mpi_threads_suffice = true;
  int launched_ranks = 1;  // what mpirun says it started
  int mpi_ranks = 1;       // what MPI says there are
  int mpi_rank = 0;
};

/// Looks. Initialises and finalises MPI, so it is for a process that does nothing else.
Machine look_at_machine();

struct Diagnosis {
  std::string report;
  std::vector<std::string> warnings;
  int exit_status = 0;  // 7 if mpirun cannot be used
};
Diagnosis diagnose(const Machine& machine, Style style);

/// Looks, prints on rank 0, returns the exit status.
int run_doctor(std::ostream& out, Style style);

}  // namespace zerolab
