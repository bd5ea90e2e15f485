#include <fmt/format.h>
#include <mpi.h>
#include <sched.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fstream>
#include <oneapi/dnnl/dnnl.hpp>
#include <string_view>
#include <thread>

#include "lab/doctor.hpp"

namespace zerolab {
namespace {

std::string compiler() {
#if defined(__clang__)
  return fmt::format("Clang {}.{}.{}", __clang_major__, __clang_minor__, __clang_patchlevel__);
#else
  return fmt::format("GCC {}.{}.{}", __GNUC__, __GNUC_MINOR__, __GNUC_PATCHLEVEL__);
#endif
}

std::string instruction_set() {
  using Isa = dnnl::cpu_isa;
  switch (dnnl::get_effective_cpu_isa()) {
    case Isa::sse41:
      return "SSE4.1";
    case Isa::avx:
      return "AVX";
    case Isa::avx2:
      return "AVX2";
    case Isa::avx2_vnni:
      return "AVX2 with VNNI";
    case Isa::avx512_core:
      return "AVX-512";
    case Isa::avx512_core_vnni:
      return "AVX-512 with VNNI";
    case Isa::avx512_core_bf16:
      return "AVX-512 with bf16";
    default:
      break;
  }
  const int number = static_cast<int>(dnnl::get_effective_cpu_isa());
  return number == 0 ? "" : fmt::format("oneDNN's number {:#x}", number);
}

std::string processor() {
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line);) {
    if (line.rfind("model name", 0) == 0) return line.substr(line.find(':') + 2);
  }
  return "unknown";
}

int usable_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) == 0) return CPU_COUNT(&set);
  return static_cast<int>(std::thread::hardware_concurrency());
}

// "MemAvailable:   12345 kB" -> bytes; 0 if the line is not there.
Index memory_line(std::string_view label) {
  std::ifstream in("/proc/meminfo");
  for (std::string line; std::getline(in, line);) {
    if (line.rfind(label, 0) == 0) return std::atoll(line.c_str() + label.size()) * 1024;
  }
  return 0;
}

// A container may use less than the machine has.
void ask_memory(Machine& machine) {
  machine.memory = memory_line("MemTotal:");
  machine.memory_free = memory_line("MemAvailable:");
  Index limit = 0;
  Index used = 0;
  if (std::ifstream("/sys/fs/cgroup/memory.max") >> limit &&
      std::ifstream("/sys/fs/cgroup/memory.current") >> used) {
    machine.memory = std::min(machine.memory, limit);
    machine.memory_free = std::min(machine.memory_free, std::max(Index{0}, limit - used));
  }
}

Index free_shared_memory() {
  struct statvfs info {};
  if (statvfs("/dev/shm", &info) != 0) return 0;
  return static_cast<Index>(info.f_bavail) * static_cast<Index>(info.f_frsize);
}

// The launcher says in the environment how many processes it started.
int launched_ranks() {
  for (const char* name : {"PMI_SIZE", "OMPI_COMM_WORLD_SIZE"}) {
    const char* value = std::getenv(name);
    if (value != nullptr && std::atoi(value) > 0) return std::atoi(value);
  }
  return 1;
}

// "MPICH Version: 4.0.2\nMPICH Device: ch4:ucx\n..." -> what follows `label` on its line.
std::string field(std::string_view text, std::string_view label) {
  const std::size_t at = text.find(label);
  if (at == std::string_view::npos) return "";
  std::string_view rest = text.substr(at + label.size());
  rest = rest.substr(0, rest.find('\n'));
  const std::size_t begin = rest.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return "";
  return std::string(rest.substr(begin, rest.find_last_not_of(" \t") - begin + 1));
}

void ask_mpi(Machine& machine) {
  std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> version{};
  int length = 0;
  MPI_Get_library_version(version.data(), &length);
  const std::string_view text(version.data());
  const std::string mpich = field(text, "MPICH Version:");
  machine.mpi =
      mpich.empty() ? std::string(text.substr(0, text.find_first_of(",\n"))) : "MPICH " + mpich;
  machine.mpi_device = field(text, "MPICH Device:");
  int level = MPI_THREAD_SINGLE;
  MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &level);
  MPI_Comm_size(MPI_COMM_WORLD, &machine.mpi_ranks);
  MPI_Comm_rank(MPI_COMM_WORLD, &machine.mpi_rank);
  MPI_Finalize();
  machine.mpi_threads = level == MPI_THREAD_MULTIPLE     ? "multiple"
                        : level == MPI_THREAD_SERIALIZED ? "serialized"
                        : level == MPI_THREAD_FUNNELED   ? "funneled"
                                                         : "single";
  machine.mpi_threads_suffice = level >= MPI_THREAD_SERIALIZED;
}

}  // namespace

Machine look_at_machine() {
  Machine machine;
  const dnnl_version_t* version = dnnl_version();
  machine.compiler = compiler();
  machine.build = ZEROLAB_BUILD_TYPE;
#if defined(ZEROLAB_POISON_MEMORY)
  machine.fills_with_nan = true;
#endif
  machine.onednn = fmt::format("{}.{}.{}", version->major, version->minor, version->patch);
  machine.instruction_set = instruction_set();
  machine.processor = processor();
  machine.cores = usable_cores();
  if (const char* threads = std::getenv("OMP_NUM_THREADS")) machine.omp_threads = threads;
  ask_memory(machine);
  machine.shared_memory = free_shared_memory();
  machine.launched_ranks = launched_ranks();
  machine.cuda = look_for_cuda();
  ask_mpi(machine);
  return machine;
}

}  // namespace zerolab
