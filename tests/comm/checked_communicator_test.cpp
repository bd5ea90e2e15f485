#include "stages/comm/checked_communicator.hpp"

#include "stages/comm/collectives.hpp"
#include "tests/comm/conformance.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/run_job.hpp"
#include "tests/support/run_ranks.hpp"
#include "tests/support/sum_device.hpp"
#include "tests/support/thrown.hpp"

namespace zerolab {
namespace {

using Values = std::vector<float>;

struct Bench {
  explicit Bench(Communicator& communicator)
      : recorder(communicator.rank()),
        ledger("device", recorder),
        stream(communicator, device, ledger, recorder) {}

  Run evenly(Values& values) const {
    std::vector<Index> bounds;
    for (int r = 0; r <= stream.size(); ++r) {
      bounds.push_back(static_cast<Index>(values.size()) * r / stream.size());
    }
    return {values.data(), bounds};
  }

  SumDevice device;
  Recorder recorder;
  Ledger ledger;
  CommStream stream;
};

/// How the job of 4 ranks ends. Each rank starts with its number in all of `values`, which come
/// back.
struct Ended : test::JobEnd {
  std::vector<Values> values = std::vector<Values>(4);
};
Ended run(bool check, const std::function<void(Bench&, Values&)>& body) {
  Ended ended;
  static_cast<test::JobEnd&>(ended) = test::run_job(4, [&](Communicator& communicator) {
    Values& values = ended.values[static_cast<std::size_t>(communicator.rank())];
    values.assign(64, static_cast<float>(communicator.rank()));
    CheckedCommunicator checked(communicator);
    Bench bench(check ? static_cast<Communicator&>(checked) : communicator);
    body(bench, values);
  });
  return ended;
}

void gather(Bench& bench, Values& values, const std::string& owner) {
  Pending pending = all_gather(bench.stream, {bench.evenly(values)}, owner);
  bench.stream.wait(pending);
}

TEST_CASE("a checked communicator passes the conformance suite and gives the same bits", "[comm]") {
  for (int n = 1; n <= 4; ++n) {
    const auto plain = run_ranks(n, check_conformance);
    const auto checked = run_ranks(n, [](Communicator& communicator) {
      CheckedCommunicator wrapper(communicator);
      return check_conformance(wrapper);
    });
    for (std::size_t r = 0; r < plain.size(); ++r) {
      CHECK(checked[r].problems == std::vector<std::string>{});
      CHECK(checked[r].hash == plain[r].hash);
    }
  }
}

TEST_CASE("two gathers of equal size that one rank swaps are found before data moves", "[comm]") {
  const Ended ended = run(true, [](Bench& bench, Values& values) {
    const bool swaps = bench.stream.rank() == 2;
    gather(bench, values, swaps ? "second.weight" : "first.weight");
    gather(bench, values, swaps ? "first.weight" : "second.weight");
  });
  CHECK(ended.status == 7);
  CHECK(contains(ended.message, "ZL706"));
  for (const int rank : {0, 1, 3}) {
    CHECK(contains(ended.message, "rank " + std::to_string(rank) +
                                      " is at all_gather 1 of 'first.weight', 64 elements fp32"));
  }
  CHECK(contains(ended.message, "rank 2 is at all_gather 1 of 'second.weight', 64 elements fp32"));
  for (std::size_t rank = 0; rank < 4; ++rank) {
    CHECK(ended.values[rank] == Values(64, static_cast<float>(rank)));
  }
}

TEST_CASE("swapped gathers are found without the check too, and nothing is mistaken", "[comm]") {
  const Ended ended = run(false, [](Bench& bench, Values& values) {
    gather(bench, values, bench.stream.rank() == 2 ? "second.weight" : "first.weight");
  });
  CHECK(ended.status == 7);
  CHECK(contains(ended.message, "ZL706"));
  for (std::size_t i = 32; i < 48; ++i) CHECK(ended.values[0][i] == 0);  // not rank 2's
}

TEST_CASE("another operation, size or number of the collective is found", "[comm]") {
  const Ended operation = run(true, [](Bench& bench, Values& values) {
    if (bench.stream.rank() != 1) return gather(bench, values, "a");
    Pending pending = all_reduce(bench.stream, {bench.evenly(values)}, 1, "a");
    bench.stream.wait(pending);
  });
  CHECK(contains(operation.message, "rank 0 is at all_gather 1 of 'a'"));
  CHECK(contains(operation.message, "rank 1 is at all_reduce 1 of 'a'"));

  const Ended size = run(true, [](Bench& bench, Values& values) {
    if (bench.stream.rank() == 3) values.resize(60);
    gather(bench, values, "a");
  });
  CHECK(contains(size.message, "rank 2 is at all_gather 1 of 'a', 64 elements"));
  CHECK(contains(size.message, "rank 3 is at all_gather 1 of 'a', 60 elements"));

  const Ended number = run(true, [](Bench& bench, Values& values) {
    if (bench.stream.rank() > 0) barrier(bench.stream, "alone");
    gather(bench, values, "a");
  });
  CHECK(contains(number.message, "rank 0 is at all_gather 1 of 'a'"));
  CHECK(contains(number.message, "rank 3 is at barrier 1 of 'alone'"));
}

TEST_CASE("checks count as control, 8 bytes to every peer for each collective", "[comm]") {
  const auto totals = run_ranks(3, [](Communicator& communicator) {
    CheckedCommunicator checked(communicator);
    Bench bench(checked);
    Values values(9);
    gather(bench, values, "a");
    gather(bench, values, "b");
    return bench.stream.totals().traffic;
  });
  for (const auto& traffic : totals) {
    CHECK(traffic.at(Op::all_gather).bytes_sent == 2 * 2 * 3 * 4);
    CHECK(traffic.at(Op::control).bytes_sent == 2 * 2 * 8);
  }
}

}  // namespace
}  // namespace zerolab
