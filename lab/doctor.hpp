#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lab/subcommands.hpp"
#include "lab/table.hpp"
#include "stages/base/error.hpp"
#include "stages/base/types.hpp"

namespace zerolab {

/// What there is of CUDA, found at run time. Texts are empty for what is not here.
struct Cuda {
  std::string driver;                // the newest CUDA it can run, "12.4"
  std::vector<std::string> devices;  // "NVIDIA H200, 140 GiB"
  std::string compiler;              // where nvcc is
  std::string nccl;                  // "2.18.5"
};

/// What this machine and this build have to offer.
struct Machine {
  std::string compiler;         // "GCC 12.2.0"
  std::string build;            // "Release"
  bool fills_with_nan = false;  // memory before its first write and after its last use
  std::string onednn;           // "2.6.3"
  std::string instruction_set;  // what oneDNN uses, "AVX-512 with bf16"; empty below SSE4.1
  std::string processor;
  int cores = 0;            // that this process may use
  std::string omp_threads;  // OMP_NUM_THREADS
  Index memory = 0;         // bytes, or what the container may use of them
  Index memory_free = 0;    // bytes
  Index shared_memory = 0;  // bytes free in /dev/shm, which ranks on one machine talk through
  std::string mpi;          // "MPICH 4.0.2"
  std::string mpi_device;   // "ch4:ucx"
  std::string mpi_threads;  // "multiple"
  bool mpi_threads_suffice = true;
  int launched_ranks = 1;  // what mpirun says it started
  int mpi_ranks = 1;       // what MPI says there are
  int mpi_rank = 0;
  Cuda cuda;
};

/// Looks. Initialises and finalises MPI, so it is for a process that does nothing else.
Machine look_at_machine();
/// Looks for driver, devices, nvcc and NCCL. No build of zerolab is linked to any of them.
Cuda look_for_cuda();

/// Something that does not work here, or not as it should.
struct Finding {
  std::string what;
  std::string way_out;
  std::optional<Code> code = std::nullopt;  // of the error that a run would end with
};

struct Diagnosis {
  std::vector<std::vector<std::string>> rows;  // what, and what there is of it
  std::vector<Finding> findings;
  int exit_status = 0;  // 7 if mpirun cannot be used
};
Diagnosis diagnose(const Machine& machine);

/// The table, then the findings.
std::string doctor_text(const Diagnosis& diagnosis, Style style);

Subcommand doctor_subcommand();

}  // namespace zerolab
