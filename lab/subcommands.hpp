#pragma once

#include <functional>
#include <string>
#include <vector>

namespace CLI {  // NOLINT(readability-identifier-naming): theirs
class App;
}

namespace zerolab {

/// A subcommand of one process: it trains nothing itself, and has no ranks.
struct Subcommand {
  std::string name;
  std::string about;  // for --help
  /// Declares the flags. What it returns does the work once they are parsed, and returns the exit
  /// status; it may throw Error.
  std::function<std::function<int()>(CLI::App&)> declare;
  bool under_mpirun = false;  // whether it makes sense there
};

std::vector<Subcommand> subcommands_without_ranks();

}  // namespace zerolab
