#include "stages/comm/job.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
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

RankOutcome fail(Communicator& communicator, const RankProgram& program, const Error& error) {
  attempt(program.on_failure, communicator);
  const bool reports = communicator.announce_failure();
  if (reports) attempt(program.report, communicator, error);
  return {error.exit_status(), reports};
}

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
    return fail(communicator, program, Error(Code::internal, error.what(), ""));
  } catch (...) {
    return fail(communicator, program, Error(Code::internal, "an unknown exception", ""));
  }
}

int run_threads(int ranks, const std::function<RankProgram(int rank)>& program) {
  LocalWorld world(ranks);
  std::vector<RankProgram> programs;
  programs.reserve(static_cast<std::size_t>(ranks));
  for (int rank = 0; rank < ranks; ++rank) programs.push_back(program(rank));

  std::vector<RankOutcome> outcomes(programs.size());
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < programs.size(); ++i) {
    threads.emplace_back(
        [&, i] { outcomes[i] = run_rank(world.rank(static_cast<int>(i)), programs[i]); });
  }
  for (std::thread& thread : threads) thread.join();

  const auto reported = std::find_if(outcomes.begin(), outcomes.end(),
                                     [](const RankOutcome& outcome) { return outcome.reported; });
  return reported == outcomes.end() ? 0 : reported->status;
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
