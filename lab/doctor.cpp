#include "lab/doctor.hpp"

#include <fmt/format.h>

#include "stages/base/error.hpp"
#include "stages/memory/ledger.hpp"

namespace zerolab {
namespace {

constexpr Index kSharedMemoryWanted = Index{64} << 20;

std::string launcher(const Machine& machine) {
  if (machine.launched_ranks == 1)
    return "not started by mpirun: mpirun -n 2 zerolab doctor tests it";
  return fmt::format("mpirun started {}, MPI sees {}", machine.launched_ranks, machine.mpi_ranks);
}

}  // namespace

Diagnosis diagnose(const Machine& machine, Style style) {
  Diagnosis diagnosis;
  Table table;
  table.columns = {{"this machine", Table::Align::left}, {"", Table::Align::left}};
  table.rows = {
      {"compiler", machine.compiler},
      {"processor", fmt::format("{}, {} core{} to use", machine.processor, machine.cores,
                                machine.cores == 1 ? "" : "s")},
      {"oneDNN", fmt::format("{}, computes with {}", machine.onednn, machine.instruction_set)},
      {"memory", human_bytes(machine.memory)},
      {"/dev/shm", human_bytes(machine.shared_memory) + " free"},
      {"MPI", machine.mpi_device.empty() ? machine.mpi
                                         : fmt::format("{}, {}", machine.mpi, machine.mpi_device)},
      {"MPI threads", machine.mpi_threads},
      {"launcher", launcher(machine)},
  };
  diagnosis.report = draw_table(table, style);
  if (machine.shared_memory < kSharedMemoryWanted) {
    diagnosis.warnings.push_back(fmt::format(
        "/dev/shm has {} free: ranks of one machine talk through it; in a container, start it with "
        "--shm-size=1g",
        human_bytes(machine.shared_memory)));
  }
  const auto fail = [&diagnosis](Code code, const std::string& what, const std::string& way_out) {
    const Error error(code, what, way_out);
    diagnosis.warnings.emplace_back(error.what());
    diagnosis.exit_status = error.exit_status();
  };
  if (!machine.mpi_threads_suffice) {
    fail(Code::mpi_thread_level,
         fmt::format("MPI offers the thread level {}; serialized is needed", machine.mpi_threads),
         "run the ranks as threads, with -n and without mpirun");
  }
  if (machine.launched_ranks != machine.mpi_ranks) {
    fail(Code::mpi_singletons,
         fmt::format("mpirun started {} processes, but MPI sees {}: mpirun and the MPI library do "
                     "not belong together",
                     machine.launched_ranks, machine.mpi_ranks),
         "use the mpirun of the MPI that zerolab was built with, or run the ranks as threads with "
         "-n");
  }
  return diagnosis;
}

int run_doctor(std::ostream& out, Style style) {
  const Machine machine = look_at_machine();
  const Diagnosis diagnosis = diagnose(machine, style);
  if (machine.mpi_rank == 0) {
    out << diagnosis.report;
    for (const std::string& warning : diagnosis.warnings) out << '\n' << warning << '\n';
    if (diagnosis.warnings.empty()) out << "\n everything zerolab needs is here\n";
    out << std::flush;
  }
  return diagnosis.exit_status;
}

}  // namespace zerolab
