#pragma once

#include <sys/types.h>

#include <chrono>
#include <string>
#include <vector>

#include "tests/cli/command.hpp"

namespace zerolab::test {

/// A command that runs while the test goes on; killed if the test ends first.
class BackgroundRun {
 public:
  /// `line` has no shell operators; its first process is the one that `signal` reaches.
  explicit BackgroundRun(const std::string& line);
  ~BackgroundRun();
  BackgroundRun(const BackgroundRun&) = delete;
  BackgroundRun& operator=(const BackgroundRun&) = delete;

  void signal(int number) const;
  /// Waits for its end, half a minute at most; status -1 if it has not ended or a signal ended it.
  Outcome finish();

 private:
  Scratch streams_;
  pid_t process_ = -1;
};

/// The processes that mpirun has started for the run in this folder, in order of their ranks.
std::vector<pid_t> rank_processes(const std::filesystem::path& folder);

/// Waits until none of them is left, half a minute at most: mpirun may end before the last process
/// that it killed has. False if one stays.
bool nothing_is_left(const std::filesystem::path& folder);

/// Waits until rank 0's log has so many steps, half a minute at most. False if it never has.
bool reaches_step(const std::filesystem::path& folder, int steps);

}  // namespace zerolab::test
