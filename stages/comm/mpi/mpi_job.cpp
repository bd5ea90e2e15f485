#include <fmt/format.h>
#include <mpi.h>

#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <thread>

#include "stages/comm/job.hpp"
#include "stages/comm/mpi/mpi_communicator.hpp"
#include "stages/comm/rank_outcome.hpp"

namespace zerolab {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr seconds kUntilKilled{10};
constexpr milliseconds kForOutput{100};

void initialise() {
  int provided = MPI_THREAD_SINGLE;
  MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided);
  if (provided < MPI_THREAD_SERIALIZED) {
    MPI_Finalize();
    throw Error(Code::mpi_thread_level,
                "MPI does not let two threads call it in turn (MPI_THREAD_SERIALIZED)",
                "use an MPI built with threads, or run ranks as threads: -n N without mpirun");
  }
}

void refuse_singletons() {
  int size = 1;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const auto place = launch_place();
  if (!place || place->size == 1 || size > 1) return;
  MPI_Finalize();
  throw Error(Code::mpi_singletons,
              fmt::format("mpirun started {} processes, but MPI says that each is alone; Ubuntu "
                          "24.04's MPICH package has this bug (its library does not talk to its "
                          "mpirun)",
                          place->size),
              "run ranks as threads: -n N without mpirun; or install an MPICH whose mpirun fits");
}

// What was written last reaches mpirun through a pipe, and is lost if mpirun hears of the abort
// before it has read it.
[[noreturn]] void end_job(const RankOutcome& outcome) {
  std::cout.flush();
  std::cerr.flush();
  std::fflush(nullptr);
  // Nobody but the rank that wrote the message ends the job: mpirun's status would be another.
  if (outcome.reported) {
    std::this_thread::sleep_for(kForOutput);
  } else {
    std::this_thread::sleep_for(kUntilKilled);
  }
  // MPI_Abort would write a line of its own, behind ours, that tells nobody anything.
  if (std::freopen("/dev/null", "w", stderr) == nullptr) std::fclose(stderr);
  MPI_Abort(MPI_COMM_WORLD, outcome.status);
  std::_Exit(outcome.status);
}

}  // namespace

int run_mpi(const std::function<RankProgram(int rank)>& program, const Patience& patience) {
  initialise();
  refuse_singletons();
  {
    MpiCommunicator communicator(MPI_COMM_WORLD, patience);
    const RankOutcome outcome = run_rank(communicator, program(communicator.rank()));
    if (outcome.status != 0) end_job(outcome);
  }
  MPI_Finalize();
  return 0;
}

}  // namespace zerolab
