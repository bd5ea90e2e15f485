#include <fmt/format.h>

#include <cstdio>
#include <fstream>
#include <iostream>
#include <mutex>
#include <optional>

#include "lab/commands.hpp"
#include "lab/options.hpp"
#include "lab/signals.hpp"
#include "stages/comm/job.hpp"

namespace zerolab {
namespace {

/// The plan of this process, made once by whichever rank comes first. If that throws, the next rank
/// tries and throws the same, so that every rank fails and one message is written.
class SharedPlan {
 public:
  SharedPlan(const RunOptions& options, std::string command_line)
      : options_(options), command_line_(std::move(command_line)) {}

  const Plan& get(int ranks) {
    const std::lock_guard lock(mutex_);
    if (!plan_) plan_ = make_plan(options_, command_line_, ranks);
    return *plan_;
  }

  /// Whether the run has got as far as its folder.
  bool folder_is_ours() {
    const std::lock_guard lock(mutex_);
    return plan_ && *plan_->folder_is_ours;
  }

 private:
  std::mutex mutex_;
  RunOptions options_;
  std::string command_line_;
  std::optional<Plan> plan_;
};

void report_error(const Error& error) {
  std::cout.flush();
  std::cerr << "zerolab: " << error.what() << std::endl;
}

/// error.json in the run folder, for whoever finds the folder later.
void write_error(const std::filesystem::path& folder, const Communicator& communicator,
                 const Error& error) {
  write_json(folder / "error.json", {{"code", code_name(error.code())},
                                     {"exit_status", error.exit_status()},
                                     {"rank", communicator.rank()},
                                     {"message", error.what_happened()},
                                     {"way_out", error.way_out()}});
}

RankProgram program(SharedPlan& plan, const RunOptions& options) {
  RankProgram result;
  result.body = [&](Communicator& communicator) {
    const Plan& shared = plan.get(communicator.size());
    if (options.command == Command::train) {
      train_command(communicator, shared);
    } else {
      compare_command(communicator, shared);
    }
  };
  result.report = [&](const Communicator& communicator, const Error& error) {
    report_error(error);
    if (plan.folder_is_ours()) write_error(options.out, communicator, error);
  };
  return result;
}

std::string joined(int argc, char** argv) {
  std::string line = "zerolab";
  for (int i = 1; i < argc; ++i) line += fmt::format(" {}", argv[i]);
  return line;
}

/// A failure before there are ranks: under mpirun every process has it, and one may say so.
int fail_early(const Error& error) {
  const std::optional<LaunchPlace> place = launch_place();
  if (!place) {
    report_error(error);
    return error.exit_status();
  }
  return run_mpi([&](int) {
    RankProgram failing;
    failing.body = [&](Communicator&) { throw error; };
    failing.report = [](const Communicator&, const Error& reported) { report_error(reported); };
    return failing;
  });
}

int run(int argc, char** argv) {
  Invocation invocation;
  try {
    invocation = parse_command_line({argv + 1, argv + argc}, launched_by_mpi());
  } catch (const Error& error) {
    return fail_early(error);
  }
  const bool first = !launch_place() || launch_place()->rank == 0;
  if (invocation.text) {
    if (first) std::cout << *invocation.text;
    return 0;
  }
  if (invocation.alone) {
    try {
      return invocation.alone();
    } catch (const Error& error) {
      if (first) report_error(error);
      return error.exit_status();
    }
  }
  const RunOptions& options = invocation.options;
  const Signals signals;
  const Patience patience{
      .timeout = std::chrono::seconds(options.comm_timeout),
      .look_around = [&](const Signature& signature) { signals.throw_if_received(signature); }};
  SharedPlan plan(options, joined(argc, argv));
  const auto rank_program = [&](int) { return program(plan, options); };
  try {
    if (launched_by_mpi()) return run_mpi(rank_program, patience);
    return run_threads(options.ranks.value_or(kDefaultRanks), rank_program, patience);
  } catch (const Error& error) {
    if (first) report_error(error);
    return error.exit_status();
  }
}

}  // namespace
}  // namespace zerolab

int main(int argc, char** argv) { return zerolab::run(argc, argv); }
