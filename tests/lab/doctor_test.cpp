#include "lab/doctor.hpp"

#include "tests/support/catch.hpp"
#include "tests/support/thrown.hpp"

namespace zerolab {
namespace {

Machine laptop() {
  Machine machine;
  machine.compiler = "GCC 12.2.0";
  machine.build = "Release";
  machine.onednn = "2.6.3";
  machine.instruction_set = "AVX2";
  machine.processor = "A processor";
  machine.cores = 2;
  machine.memory = Index{16} << 30;
  machine.memory_free = Index{12} << 30;
  machine.shared_memory = Index{8} << 30;
  machine.mpi = "MPICH 4.0.2";
  machine.mpi_device = "ch4:ucx";
  machine.mpi_threads = "multiple";
  return machine;
}

std::string text_of(const Machine& machine) { return doctor_text(diagnose(machine), Style::ascii); }

/// The only finding; an empty one if there are none or several.
Finding finding_of(const Machine& machine) {
  const Diagnosis diagnosis = diagnose(machine);
  return diagnosis.findings.size() == 1 ? diagnosis.findings[0] : Finding{};
}

TEST_CASE("the doctor's table is printed as it was approved", "[lab]") {
  const Diagnosis well = diagnose(laptop());
  CHECK(well.exit_status == 0);
  CHECK(well.findings.empty());
  CHECK("\n" + doctor_text(well, Style::ascii) == R"approved(
 this machine
--------------------------------------------------------------
 compiler      GCC 12.2.0
 build         Release
 processor     A processor
 cores         2 to use; 4 ranks take turns
 threads       1 a rank, unless --threads says otherwise
 memory        16.0 GiB, 12.0 GiB free
 oneDNN        2.6.3, computes with AVX2
 MPI           MPICH 4.0.2, ch4:ucx
 MPI threads   multiple
 launcher      none; try mpirun -n 2 zerolab doctor
 /dev/shm      8.00 GiB free
 CUDA          none, and none needed: ranks compute on the CPU

 everything zerolab needs is here
)approved");
}

TEST_CASE("the doctor says what is there of threads, NaN and CUDA, and what comes of it", "[lab]") {
  Machine machine = laptop();
  machine.fills_with_nan = true;
  machine.omp_threads = "8";
  machine.cores = 4;
  machine.cuda = {"12.4", {"NVIDIA H200, 140 GiB"}, "/usr/local/cuda/bin/nvcc", ""};
  const std::string text = text_of(machine);
  CHECK(contains(text, "Release, freed memory is NaN\n"));
  CHECK(contains(text, "OMP_NUM_THREADS=8 has no effect\n"));
  CHECK(contains(text, "cores         4 to use\n"));
  CHECK(contains(text, "for CUDA 12.4, 1 device\n               NVIDIA H200, 140 GiB\n"));
  CHECK(contains(text, "/usr/local/cuda/bin/nvcc\n"));
  CHECK(contains(text, "NCCL          none\n"));
  CHECK(contains(text, "none of it is used yet: ranks compute on the CPU"));
  CHECK(contains(text, "everything zerolab needs is here"));
}

TEST_CASE("what is wrong with a machine but stops nobody is listed with status 0", "[lab]") {
  Machine little_shared = laptop();
  little_shared.shared_memory = 1 << 20;
  CHECK(contains(finding_of(little_shared).what, "/dev/shm, which has 1.00 MiB free"));
  CHECK(contains(finding_of(little_shared).way_out, "--shm-size=1g"));

  Machine little_memory = laptop();
  little_memory.memory_free = Index{4} << 30;
  CHECK(contains(finding_of(little_memory).what,
                 "gpt2 in stage 0 does not fit: 4 ranks take 7.42 GiB"));
  CHECK(contains(finding_of(little_memory).way_out, "all ranks together take 1.85 GiB"));

  Machine old_processor = laptop();
  old_processor.instruction_set = "";
  CHECK(contains(finding_of(old_processor).what, "less than SSE4.1"));

  for (const Machine& machine : {little_shared, little_memory, old_processor}) {
    CHECK(diagnose(machine).exit_status == 0);
    CHECK(contains(text_of(machine), "what will not work, and the way out\n\n - "));
    CHECK_FALSE(contains(text_of(machine), "everything zerolab needs is here"));
  }
}

TEST_CASE("the doctor says which MPI fault makes mpirun useless, with exit status 7", "[lab]") {
  Machine singletons = laptop();
  singletons.launched_ranks = 4;
  CHECK(diagnose(singletons).exit_status == 7);
  CHECK(contains(text_of(singletons), " - ZL702: mpirun started 4 processes, but MPI sees 1"));

  Machine no_threads = laptop();
  no_threads.mpi_threads = "single";
  no_threads.mpi_threads_suffice = false;
  CHECK(diagnose(no_threads).exit_status == 7);
  CHECK(contains(text_of(no_threads), " - ZL704: mpirun: MPI offers the thread level single"));
}

}  // namespace
}  // namespace zerolab
