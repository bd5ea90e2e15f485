#include "lab/bench/worlds.hpp"

#include <fmt/format.h>
#include <mpi.h>

#include <array>
#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include "stages/comm/job.hpp"
#include "stages/comm/local/local_world.hpp"
#include "stages/comm/mpi/mpi_communicator.hpp"

namespace zerolab::bench {
namespace {

constexpr std::array kSizes{1, 2, 4};

void report(const Communicator&, const Error& error) {
  fmt::print(stderr, "zerolab_bench: {}\n", error.what());
}

// The communicator's own meeting polls quickly, which those being measured would feel.
void meet_slowly(MPI_Comm everybody) {
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Ibarrier(everybody, &request);
  for (int here = 0; here == 0;) {
    MPI_Test(&request, &here, MPI_STATUS_IGNORE);
    if (here == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

}  // namespace

int run_on_threads(int ranks, const std::function<void(Worlds&)>& body) {
  std::map<int, LocalWorld> smaller;
  for (const int size : kSizes) {
    if (size <= ranks) smaller.try_emplace(size, size);
  }
  return run_threads(ranks, [&](int) {
    const auto run = [&](Communicator& everybody) {
      Worlds worlds{.rank = everybody.rank(),
                    .size = ranks,
                    .kind = everybody.description(),
                    .first = {},
                    .meet = [&] { meet(everybody, "next bench"); }};
      for (auto& [size, world] : smaller) {
        if (worlds.rank < size) worlds.first[size] = &world.rank(worlds.rank);
      }
      body(worlds);
    };
    return RankProgram{.body = run, .report = report};
  });
}

int run_on_mpi(const std::function<void(Worlds&)>& body) {
  return run_mpi([&](int) {
    const auto run = [&](Communicator& everybody) {
      Worlds worlds{.rank = everybody.rank(),
                    .size = everybody.size(),
                    .kind = everybody.description(),
                    .first = {},
                    .meet = [] { meet_slowly(MPI_COMM_WORLD); }};
      std::vector<std::unique_ptr<MpiCommunicator>> communicators;
      for (const int size : kSizes) {
        MPI_Comm part = MPI_COMM_NULL;
        MPI_Comm_split(MPI_COMM_WORLD, worlds.rank < size ? 0 : MPI_UNDEFINED, worlds.rank, &part);
        if (part == MPI_COMM_NULL) continue;
        if (size <= worlds.size) {
          communicators.push_back(std::make_unique<MpiCommunicator>(part));
          worlds.first[size] = communicators.back().get();
        }
        MPI_Comm_free(&part);
      }
      body(worlds);
    };
    return RankProgram{.body = run, .report = report};
  });
}

}  // namespace zerolab::bench
