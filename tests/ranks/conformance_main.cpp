// The conformance suite over MPI, and the same bits as with threads. Run under mpirun.

#include <fmt/format.h>
#include <mpi.h>

#include <bit>
#include <cstring>

#include "stages/comm/checked_communicator.hpp"
#include "stages/comm/collectives.hpp"
#include "stages/comm/job.hpp"
#include "stages/comm/mpi/mpi_communicator.hpp"
#include "tests/comm/conformance.hpp"
#include "tests/support/run_ranks.hpp"
#include "tests/support/sum_device.hpp"

namespace zerolab {
namespace {

std::vector<std::uint64_t> hashes_of_all(Communicator& communicator, std::uint64_t mine) {
  SumDevice device;
  Recorder recorder(communicator.rank());
  Ledger ledger("device", recorder);
  CommStream stream(communicator, device, ledger, recorder);
  std::vector<std::uint64_t> hashes;
  for (const auto& bytes : share(stream, std::as_bytes(std::span(&mine, 1)), "hashes")) {
    std::memcpy(&hashes.emplace_back(), bytes.data(), sizeof(mine));
  }
  return hashes;
}

void check(Communicator& communicator) {
  const Conformance result = check_conformance(communicator);
  std::vector<std::string> problems = result.problems;
  const std::vector<std::uint64_t> hashes = hashes_of_all(communicator, result.hash);
  if (communicator.rank() == 0) {
    const auto threads = run_ranks(communicator.size(), check_conformance);
    for (std::size_t r = 0; r < hashes.size(); ++r) {
      if (threads[r].hash == hashes[r]) continue;
      problems.push_back(fmt::format("rank {}: threads and MPI give other bits", r));
    }
  }
  if (!problems.empty()) {
    throw Error(Code::communication, fmt::format("{}", fmt::join(problems, "\n")), "");
  }
}

void body(Communicator& communicator) {
  check(communicator);
  CheckedCommunicator checked(communicator);
  check(checked);
  MpiCommunicator in_pieces(MPI_COMM_WORLD, {}, 1000);  // what messages beyond 2 GiB go through
  check(in_pieces);
}

}  // namespace
}  // namespace zerolab

int main() {
  using namespace zerolab;
  const auto report = [](const Communicator&, const Error& error) {
    fmt::print(stderr, "{}\n", error.what());
  };
  return run_mpi([&](int) { return RankProgram{.body = body, .report = report}; });
}
