#include "lab/doctor.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>

#include "lab/options.hpp"
#include "lab/terminal.hpp"
#include "stages/memory/ledger.hpp"
#include "stages/model/description.hpp"

namespace zerolab {
namespace {

constexpr Index kSharedMemoryWanted = Index{64} << 20;
constexpr Index kModelStates = 16;  // bytes a parameter in stage 0: fp32 with Adam
constexpr std::string_view kBigModel = "gpt2";

std::string plural(std::size_t count, std::string_view what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

std::string launcher(const Machine& machine) {
  if (machine.launched_ranks == 1) return "none; try mpirun -n 2 zerolab doctor";
  return fmt::format("mpirun started {}, MPI sees {}", machine.launched_ranks, machine.mpi_ranks);
}

int ranks_of(const Machine& machine) {
  return machine.launched_ranks > 1 ? machine.launched_ranks : kDefaultRanks;
}

std::string threads(const Machine& machine) {
  std::string text = "1 a rank, unless --threads says otherwise";
  if (!machine.omp_threads.empty()) {
    text += fmt::format("; OMP_NUM_THREADS={} has no effect", machine.omp_threads);
  }
  return text;
}

std::string cores(const Machine& machine) {
  const int ranks = ranks_of(machine);
  std::string text = fmt::format("{} to use", machine.cores);
  if (machine.cores >= ranks) return text;
  return fmt::format("{}; {} ranks take turns", text, ranks);
}

void add_cuda(const Cuda& cuda, Diagnosis& diagnosis) {
  if (cuda.driver.empty() && cuda.compiler.empty() && cuda.nccl.empty()) {
    diagnosis.rows.push_back({"CUDA", "none, and none needed: ranks compute on the CPU"});
    return;
  }
  const auto or_none = [](const std::string& text) { return text.empty() ? "none" : text; };
  diagnosis.rows.push_back(
      {"CUDA driver", cuda.driver.empty() ? "none"
                                          : fmt::format("for CUDA {}, {}", cuda.driver,
                                                        plural(cuda.devices.size(), "device"))});
  for (const std::string& device : cuda.devices) diagnosis.rows.push_back({"", device});
  diagnosis.rows.push_back({"nvcc", or_none(cuda.compiler)});
  diagnosis.rows.push_back({"NCCL", or_none(cuda.nccl)});
  diagnosis.rows.push_back({"", "none of it is used yet: ranks compute on the CPU"});
}

// What would make mpirun useless; the rest of zerolab works.
void judge_mpi(const Machine& machine, Diagnosis& diagnosis) {
  if (!machine.mpi_threads_suffice) {
    diagnosis.findings.push_back(
        {fmt::format("mpirun: MPI offers the thread level {}; serialized is needed",
                     machine.mpi_threads),
         "run the ranks as threads, with -n and without mpirun", Code::mpi_thread_level});
  }
  if (machine.launched_ranks != machine.mpi_ranks) {
    diagnosis.findings.push_back(
        {fmt::format("mpirun started {} processes, but MPI sees {}: mpirun and the MPI library do "
                     "not belong together",
                     machine.launched_ranks, machine.mpi_ranks),
         "use the mpirun of the MPI that zerolab was built with, or run the ranks as threads with "
         "-n",
         Code::mpi_singletons});
  }
}

void judge_memory(const Machine& machine, Diagnosis& diagnosis) {
  if (machine.shared_memory < kSharedMemoryWanted) {
    diagnosis.findings.push_back(
        {fmt::format("mpirun with several ranks may fail: they talk through /dev/shm, which has {} "
                     "free",
                     human_bytes(machine.shared_memory)),
         "in a container, start it with --shm-size=1g; or run the ranks as threads with -n"});
  }
  const int ranks = ranks_of(machine);
  const Index sharded = kModelStates * parameter_count(*find_preset(kBigModel));
  if (sharded * ranks > machine.memory_free) {
    diagnosis.findings.push_back(
        {fmt::format("{} in stage 0 does not fit: {} ranks take {} for the model states alone, and "
                     "{} is free",
                     kBigModel, ranks, human_bytes(sharded * ranks),
                     human_bytes(machine.memory_free)),
         fmt::format("fewer ranks, a smaller model, or stage 3, where all ranks together take {}",
                     human_bytes(sharded))});
  }
}

void judge_processor(const Machine& machine, Diagnosis& diagnosis) {
  if (machine.instruction_set.empty()) {
    diagnosis.findings.push_back(
        {"oneDNN finds less than SSE4.1 here, so that every product is computed by slow general "
         "code",
         "unset ONEDNN_MAX_CPU_ISA, or use a processor made after 2008"});
  }
}

}  // namespace

Diagnosis diagnose(const Machine& machine) {
  Diagnosis diagnosis;
  diagnosis.rows = {
      {"compiler", machine.compiler},
      {"build", machine.build + (machine.fills_with_nan ? ", freed memory is NaN" : "")},
      {"processor", machine.processor},
      {"cores", cores(machine)},
      {"threads", threads(machine)},
      {"memory",
       fmt::format("{}, {} free", human_bytes(machine.memory), human_bytes(machine.memory_free))},
      {"oneDNN",
       fmt::format("{}, computes with {}", machine.onednn,
                   machine.instruction_set.empty() ? "less than SSE4.1" : machine.instruction_set)},
      {"MPI", machine.mpi_device.empty() ? machine.mpi
                                         : fmt::format("{}, {}", machine.mpi, machine.mpi_device)},
      {"MPI threads", machine.mpi_threads},
      {"launcher", launcher(machine)},
      {"/dev/shm", human_bytes(machine.shared_memory) + " free"},
  };
  add_cuda(machine.cuda, diagnosis);
  judge_mpi(machine, diagnosis);
  judge_memory(machine, diagnosis);
  judge_processor(machine, diagnosis);
  for (const Finding& finding : diagnosis.findings) {
    if (finding.code) diagnosis.exit_status = Error(*finding.code, "", "").exit_status();
  }
  return diagnosis;
}

std::string doctor_text(const Diagnosis& diagnosis, Style style) {
  Table table;
  table.columns = {{"this machine", Table::Align::left}, {"", Table::Align::left}};
  table.rows = diagnosis.rows;
  std::string text = draw_table(table, style);
  if (diagnosis.findings.empty()) return text + "\n everything zerolab needs is here\n";
  text += "\n what will not work, and the way out\n";
  for (const Finding& finding : diagnosis.findings) {
    text += fmt::format("\n - {}{}\n   way out: {}\n",
                        finding.code ? code_name(*finding.code) + ": " : "", finding.what,
                        finding.way_out);
  }
  return text;
}

Subcommand doctor_subcommand() {
  const auto declare = [](CLI::App& app) -> std::function<int()> {
    const auto plain = std::make_shared<bool>(false);
    app.add_flag("--plain", *plain, "Print in ASCII");
    return [plain] {
      const Machine machine = look_at_machine();
      const Diagnosis diagnosis = diagnose(machine);
      if (machine.mpi_rank == 0) {
        std::cout << doctor_text(diagnosis, choose_style(*plain, output_is_terminal()));
      }
      return diagnosis.exit_status;
    };
  };
  return {"doctor", "Say what this machine can do", declare, true};
}

}  // namespace zerolab
