#include "stages/comm/job.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <mutex>
#include <string_view>
#include <thread>
#include <vector>

#include "stages/comm/local/local_world.hpp"
#include "stages/comm/rank_outcome.hpp"

namespace zerolab {
namespace {

// What goes wrong while a failure is handled must not hide the failure.
template <typename Function, typename... Args>
void attempt(const Function& function, const Args&... args) noexcept {
  try {
    if (function) function(args...);
  } catch (...) {
  }
}

// Who waits in vain, or meets another collective, cannot know why; where each rank is tells it.
Error with_whereabouts(const Error& error, const Communicator& communicator) {
  std::string text = error.what_happened();
  const std::vector<std::string> ranks = communicator.whereabouts();
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    text += fmt::format("\n  rank {} {}", rank,
                        ranks[rank].empty() ? "does not answer: it is stopped, or it computes and "
                                              "comes to no collective"
                                            : ranks[rank]);
  }
  return Error(error.code(), text, error.way_out());
}

RankOutcome fail(Communicator& communicator, const RankProgram& program, const Error& error) {
  attempt(program.on_failure, communicator);
  const bool reports = communicator.announce_failure();
  const bool apart =
      error.code() == Code::comm_timeout || error.code() == Code::collective_mismatch;
  if (reports && apart) {
    attempt(program.report, communicator, with_whereabouts(error, communicator));
  } else if (reports) {  // the error itself: a copy would have lost its details
    attempt(program.report, communicator, error);
  }
  return {error.exit_status(), reports};
}

/// The ranks of run_threads that have not ended.
class Running {
 public:
  explicit Running(int ranks) : left_(ranks) {}

  void ended(const RankOutcome& outcome) {
    const std::lock_guard lock(mutex_);
    --left_;
    if (outcome.reported) status_ = outcome.status;
    changed_.notify_all();
  }

  /// Returns when all have; ends the process if one does not after the failure of another.
  void wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return left_ == 0 || status_ != 0; });
    if (changed_.wait_for(lock, kUntilLeft, [this] { return left_ == 0; })) return;
    std::cout.flush();
    std::cerr.flush();
    std::fflush(nullptr);
    std::_Exit(status_);
  }

  int status() const { return status_; }

 private:
  static constexpr std::chrono::seconds kUntilLeft{2};

  std::mutex mutex_;
  std::condition_variable changed_;
  int left_;
  int status_ = 0;
};

std::optional<int> environment_number(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr) return std::nullopt;
  const std::string_view text(value);
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

}  // namespace

Error internal_error(const std::string& what) {
  return Error(Code::internal, what,
               "for std::bad_alloc a smaller model, fewer ranks or a --device-memory that the "
               "machine has; anything else is a defect of zerolab, so please report it with the "
               "command line, and with run.json and error.json where they are");
}

RankOutcome run_rank(Communicator& communicator, const RankProgram& program) {
  try {
    program.body(communicator);
    // A rank that leaves early could not answer the failure of a peer.
    meet(communicator, "end of the run");
    return {};
  } catch (const PeerFailed& error) {
    attempt(program.on_failure, communicator);
    communicator.acknowledge_failure();
    return {error.exit_status(), false};
  } catch (const Error& error) {
    return fail(communicator, program, error);
  } catch (const std::exception& error) {
    return fail(communicator, program, internal_error(error.what()));
  } catch (...) {
    return fail(communicator, program, internal_error("an unknown exception"));
  }
}

int run_threads(int ranks, const std::function<RankProgram(int rank)>& program,
                const Patience& patience) {
  LocalWorld world(ranks, patience);
  std::vector<RankProgram> programs;
  programs.reserve(static_cast<std::size_t>(ranks));
  for (int rank = 0; rank < ranks; ++rank) programs.push_back(program(rank));

  Running running(ranks);
  std::vector<std::thread> threads;
  threads.reserve(programs.size());
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      running.ended(run_rank(world.rank(rank), programs[static_cast<std::size_t>(rank)]));
    });
  }
  running.wait();
  for (std::thread& thread : threads) thread.join();
  return running.status();
}

std::optional<LaunchPlace> launch_place() {
  // Hydra and Slurm, PMIx launchers, Open MPI's mpirun.
  constexpr std::array<std::array<const char*, 2>, 3> kNames{{
      {"PMI_RANK", "PMI_SIZE"},
      {"PMIX_RANK", "PMIX_SIZE"},
      {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
  }};
  std::optional<LaunchPlace> place;
  for (const auto& [rank_name, size_name] : kNames) {
    const auto rank = environment_number(rank_name);
    if (!rank) continue;
    if (!place) place = LaunchPlace{*rank, 1};
    place->size = std::max(place->size, environment_number(size_name).value_or(1));
  }
  return place;
}

}  // namespace zerolab
