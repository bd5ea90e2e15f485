#include <fmt/format.h>
#include <fmt/ranges.h>

#include <csignal>
#include <filesystem>
#include <iostream>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "lab/commands.hpp"
#include "lab/error_report.hpp"
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

RankProgram program(SharedPlan& plan, const RunOptions& options, const ErrorStyle& style) {
  RankProgram result;
  result.body = [&](Communicator& communicator) {
    const Plan& shared = plan.get(communicator.size());
    switch (options.command) {
      case Command::train:
      case Command::import:
        return train_command(communicator, shared);
      case Command::compare:
        return compare_command(communicator, shared);
      case Command::generate:
        return generate_command(communicator, shared);
    }
  };
  result.report = [&](const Communicator& communicator, const Error& error) {
    const std::optional<int> rank = rank_to_blame(error, communicator.rank());
    report_error(error, rank, style);
    if (!plan.folder_is_ours()) return;  // for whoever finds the folder later
    write_json(std::filesystem::path(options.out) / "error.json", error_json(error, rank));
  };
  return result;
}

bool is_first() { return !launch_place() || launch_place()->rank == 0; }

/// A failure before there are ranks: under mpirun every process has it, and one may say so.
int fail_together(const Error& error, const ErrorStyle& style) {
  return run_mpi([&](int) {
    RankProgram failing;
    failing.body = [&](Communicator&) { throw error; };
    failing.report = [&](const Communicator&, const Error& reported) {
      report_error(reported, std::nullopt, style);
    };
    return failing;
  });
}

int run_ranks(const RunOptions& options, const std::string& command_line, const ErrorStyle& style) {
  const Signals signals;
  const Patience patience{
      .timeout = std::chrono::seconds(options.comm_timeout),
      .look_around = [&](const Signature& signature) { signals.throw_if_received(signature); }};
  SharedPlan plan(options, command_line);
  const auto rank_program = [&](int) { return program(plan, options, style); };
  if (launched_by_mpi()) return run_mpi(rank_program, patience);
  return run_threads(options.ranks.value_or(kDefaultRanks), rank_program, patience);
}

int run(const std::vector<std::string>& arguments, const ErrorStyle& style) {
  Invocation invocation;
  try {
    invocation = parse_command_line(arguments, launched_by_mpi());
  } catch (const Error& error) {
    if (!launched_by_mpi()) throw;
    return fail_together(error, style);
  }
  if (invocation.text) {
    if (is_first()) std::cout << *invocation.text;
    return 0;
  }
  if (invocation.alone) return invocation.alone();
  return run_ranks(invocation.options, fmt::format("zerolab {}", fmt::join(arguments, " ")), style);
}

/// Tells what nobody has told yet, and returns the exit status.
int fail(const Error& error, const ErrorStyle& style) {
  if (is_first()) report_error(error, std::nullopt, style);
  return error.exit_status();
}

}  // namespace
}  // namespace zerolab

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  const zerolab::ErrorStyle style = zerolab::error_style(arguments);
  std::signal(SIGXFSZ, SIG_IGN);  // a file beyond the limit is an error, and told as one
  try {
    return zerolab::run(arguments, style);
  } catch (const zerolab::Error& error) {
    return zerolab::fail(error, style);
  } catch (const std::exception& error) {
    return zerolab::fail(zerolab::internal_error(error.what()), style);
  }
}
