#include "tests/cli/background_run.hpp"

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <functional>
#include <map>
#include <thread>

#include "stages/base/read_file.hpp"

namespace zerolab::test {
namespace {

constexpr std::chrono::seconds kPatience{30};

// A process may have ended meanwhile: then its files are empty.
std::string text_of(const std::filesystem::path& file) { return read_file(file).value_or(""); }

bool comes_true(const std::function<bool()>& condition) {
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return true;
}

}  // namespace

BackgroundRun::BackgroundRun(const std::string& line) {
  const std::string command =
      fmt::format("exec {} >{} 2>{} </dev/null", line, streams_.arg("out"), streams_.arg("err"));
  process_ = fork();
  if (process_ == 0) {
    execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
    _exit(127);
  }
}

BackgroundRun::~BackgroundRun() {
  if (process_ < 0) return;
  kill(process_, SIGKILL);
  waitpid(process_, nullptr, 0);
}

void BackgroundRun::signal(int number) const { kill(process_, number); }

Outcome BackgroundRun::finish() {
  int status = 0;
  const bool ended = comes_true([&] { return waitpid(process_, &status, WNOHANG) == process_; });
  if (ended) process_ = -1;
  return {ended && WIFEXITED(status) ? WEXITSTATUS(status) : -1, text_of(streams_.path("out")),
          text_of(streams_.path("err"))};
}

std::vector<pid_t> rank_processes(const std::filesystem::path& folder) {
  std::map<int, pid_t> found;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    if (text_of(entry.path() / "cmdline").find(folder.string()) == std::string::npos) continue;
    const std::string environment = '\0' + text_of(entry.path() / "environ");
    const std::string variable = std::string(1, '\0') + "PMI_RANK=";
    const auto at = environment.find(variable);
    if (at == std::string::npos) continue;
    found[std::stoi(environment.substr(at + variable.size()))] = std::stoi(name);
  }
  std::vector<pid_t> processes;
  for (const auto& [rank, process] : found) processes.push_back(process);
  return processes;
}

bool nothing_is_left(const std::filesystem::path& folder) {
  return comes_true([&] { return rank_processes(folder).empty(); });
}

bool reaches_step(const std::filesystem::path& folder, int steps) {
  return comes_true([&] {
    const std::string log = text_of(folder / "rank0.events.jsonl");
    int found = 0;
    for (auto at = log.find("\"ev\":\"step\""); at != std::string::npos;
         at = log.find("\"ev\":\"step\"", at + 1)) {
      ++found;
    }
    return found >= steps;
  });
}

}  // namespace zerolab::test
