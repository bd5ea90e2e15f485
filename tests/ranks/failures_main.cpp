// Ranks that fail, over MPI (failures.sh runs it under mpirun and looks at what comes out).
// Argument: who fails, and what the others do meanwhile.

#include <fmt/format.h>

#include <chrono>
#include <stdexcept>
#include <string_view>
#include <thread>
#include <vector>

#include "stages/comm/collectives.hpp"
#include "stages/comm/job.hpp"
#include "tests/support/sum_device.hpp"

namespace zerolab {
namespace {

[[noreturn]] void out_of_memory() { throw Error(Code::out_of_memory, "no memory", "none"); }

void reduce_again_and_again(Communicator& communicator, std::string_view who) {
  SumDevice device;
  Recorder recorder(communicator.rank());
  Ledger ledger("device", recorder);
  CommStream stream(communicator, device, ledger, recorder);
  const int last = communicator.size() - 1;

  std::vector<float> values(1 << 20);
  std::vector<Index> bounds{0};
  for (int r = 0; r < communicator.size(); ++r) {
    bounds.push_back(static_cast<Index>(values.size()) * (r + 1) / communicator.size());
  }
  for (int step = 0; step < 4; ++step) {
    Pending pending = all_reduce(stream, {{values.data(), bounds}}, 1, "values");
    if (step == 2) {
      if (who == "all") out_of_memory();
      if (who == "last" && communicator.rank() == last) out_of_memory();
      if (who == "first-two" && communicator.rank() < 2) out_of_memory();
      if (who == "internal" && communicator.rank() == 1) throw std::logic_error("no memory");
      if (who == "while-others-compute") {
        if (communicator.rank() == 1) out_of_memory();
        std::this_thread::sleep_for(std::chrono::seconds(1));
      }
      if (who == "while-others-hang") {
        if (communicator.rank() == 1) out_of_memory();
        std::this_thread::sleep_for(std::chrono::hours(1));
      }
    }
    stream.wait(pending);
  }
}

}  // namespace
}  // namespace zerolab

int main(int argc, char** argv) {
  using namespace zerolab;
  const std::string_view who = argc > 1 ? argv[1] : "nobody";
  RankProgram program;
  program.body = [who](Communicator& communicator) { reduce_again_and_again(communicator, who); };
  program.report = [](const Communicator& communicator, const Error& error) {
    fmt::print(stderr, "rank {}: {}\n", communicator.rank(), error.what());
  };
  try {
    return run_mpi([&](int) { return program; });
  } catch (const Error& error) {
    if (launch_place().value_or(LaunchPlace{}).rank == 0) fmt::print(stderr, "{}\n", error.what());
    return error.exit_status();
  }
}
