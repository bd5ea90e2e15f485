// Accidents of a single rank, and slowness.
#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <thread>

#include "lab/failures/mistakes/mistake.hpp"
#include "lab/failures/wrappers/device_wrapper.hpp"
#include "stages/comm/communicator_wrapper.hpp"

namespace zerolab {
namespace {

constexpr int kRank = 1;
constexpr Index kStep = 3;

/// Where data is read, on one rank, at the beginning of a step.
void while_it_reads(Training& training, int rank, void (*accident)()) {
  if (rank != kRank) return;
  training.batches = [inner = training.batches, accident](Index step, Index position, Index count,
                                                          Index length, std::int32_t* tokens,
                                                          std::int32_t* targets) {
    if (step == kStep) accident();
    inner(step, position, count, length, tokens, targets);
  };
}

void die(Training& training, int rank) {
  while_it_reads(training, rank, [] { throw std::runtime_error("rank 1 cannot read its data"); });
}

void stop(Training& training, int rank) {
  while_it_reads(training, rank, [] {
    while (true) std::this_thread::sleep_for(std::chrono::hours(1));
  });
}

/// Sends less than was agreed.
class CutsShort : public CommunicatorWrapper {
 public:
  using CommunicatorWrapper::CommunicatorWrapper;

  void exchange(const Exchange& round) override {
    Exchange cut = round;
    const Op op = round.signature.op;
    if (rank() == kRank && (op == Op::reduce_scatter || op == Op::all_reduce)) {
      for (Send& send : cut.sends) send.data = send.data.first(send.data.size() / 2);
    }
    CommunicatorWrapper::exchange(cut);
  }
};

void cut_short(Training& training, int /*rank*/) {
  training.network = [](Communicator& inner) { return std::make_unique<CutsShort>(inner); };
}

/// Takes longer for a product, asleep, so that ranks which share cores do not slow each other down:
/// beside an emulated link time is then what the two say.
class SlowDevice : public DeviceWrapper {
 public:
  using DeviceWrapper::DeviceWrapper;

  void matmul(const Product& shape, ConstValues a, ConstValues b, ConstValues bias,
              Values c) override {
    std::this_thread::sleep_for(std::chrono::milliseconds(3));
    DeviceWrapper::matmul(shape, a, b, bias, c);
  }
};

void slow_down(Training& training, int /*rank*/) { wrap_device<SlowDevice>(training); }

void own_seed(Training& training, int rank) { training.seed += static_cast<std::uint64_t>(rank); }

}  // namespace

std::vector<Mistake> mistakes_in_ranks() {
  return {
      {"rank-dies", "rank 1 ends in step 3, while it reads its data", die},
      {"rank-stops", "rank 1 stops in step 3, while it reads its data", stop},
      {"cut-short", "rank 1 sends half of what the others expect", cut_short},
      {"slow-device", "every matrix product takes 3 ms longer, as on a slower device", slow_down},
      {"own-seed", "every rank starts from a seed of its own", own_seed},
  };
}

}  // namespace zerolab
