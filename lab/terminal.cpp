#include "lab/terminal.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>

#include "stages/comm/job.hpp"

namespace zerolab {
namespace {

constexpr int kGenerations = 6;  // mpirun, its proxy, perhaps a shell between
constexpr std::size_t kLeastColumns = 40;

// The fields that /proc/<pid>/stat begins with: "1234 (name) S 1233 ...".
struct Process {
  std::string name;
  int parent = 0;
};

Process look_at(int pid) {
  std::ifstream file(fmt::format("/proc/{}/stat", pid));
  std::string line;
  std::getline(file, line);
  const auto open = line.find('(');
  const auto close = line.rfind(')');
  if (open == std::string::npos || close == std::string::npos || close + 4 >= line.size())
    return {};
  return {line.substr(open + 1, close - open - 1), std::atoi(line.c_str() + close + 4)};
}

bool is_mpirun(const std::string& name) {
  return name.rfind("mpiexec", 0) == 0 || name.rfind("mpirun", 0) == 0;
}

bool is_watched(int descriptor) {
  if (isatty(descriptor) == 1) return true;
  if (!launched_by_mpi()) return false;
  int pid = getppid();
  for (int i = 0; i < kGenerations && pid > 1; ++i) {
    const Process process = look_at(pid);
    if (is_mpirun(process.name)) {
      std::error_code unreadable;
      const std::string output =
          std::filesystem::read_symlink(fmt::format("/proc/{}/fd/{}", pid, descriptor), unreadable)
              .string();
      return output.rfind("/dev/pts/", 0) == 0 || output.rfind("/dev/tty", 0) == 0;
    }
    pid = process.parent;
  }
  return false;
}

}  // namespace

bool output_is_terminal() { return is_watched(STDOUT_FILENO); }
bool errors_are_watched() { return is_watched(STDERR_FILENO); }
bool errors_go_to_terminal() { return isatty(STDERR_FILENO) == 1; }

std::size_t terminal_columns(std::size_t most) {
  for (const int descriptor : {STDOUT_FILENO, STDERR_FILENO}) {
    winsize size{};
    if (ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
      return std::clamp<std::size_t>(size.ws_col, kLeastColumns, most);
    }
  }
  return std::min(kReadableColumns, most);
}

}  // namespace zerolab
