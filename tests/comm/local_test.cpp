#include <fmt/format.h>

#include <chrono>
#include <thread>

#include "stages/comm/collectives.hpp"
#include "tests/comm/conformance.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/run_ranks.hpp"
#include "tests/support/sum_device.hpp"

namespace zerolab {
namespace {

using std::chrono::milliseconds;

/// A rank's stream with what it needs.
struct Bench {
  explicit Bench(Communicator& communicator)
      : recorder(communicator.rank()),
        ledger("device", recorder),
        stream(communicator, device, ledger, recorder) {}

  Pending sum(std::vector<float>& values) {
    std::vector<Index> bounds{0};
    for (int r = 1; r <= stream.size(); ++r) {
      bounds.push_back(static_cast<Index>(values.size()) * r / stream.size());
    }
    return all_reduce(stream, {{values.data(), bounds}}, 1, "sum");
  }

  SumDevice device;
  Recorder recorder;
  Ledger ledger;
  CommStream stream;
};

/// What a rank ended with: "ok", or the rank that its PeerFailed names.
template <typename Body>
std::string ending(Communicator& communicator, const Body& body) {
  try {
    body(communicator);
    return "ok";
  } catch (const PeerFailed& error) {
    communicator.acknowledge_failure();
    return "peer " + std::to_string(error.failed_rank());
  } catch (const Error& error) {
    return code_name(error.code()) +
           (communicator.announce_failure() ? " reported" : " not reported");
  }
}

template <typename Body>
std::vector<std::string> endings(int ranks, const Body& body) {
  return run_ranks(ranks, [&](Communicator& communicator) { return ending(communicator, body); });
}

[[noreturn]] void fail() { throw Error(Code::not_finite, "the loss is not finite", ""); }

TEST_CASE("threads pass the conformance suite at every number of ranks", "[comm]") {
  for (int n = 1; n <= 5; ++n) {
    for (const Conformance& result : run_ranks(n, check_conformance)) {
      CHECK(result.problems == std::vector<std::string>{});
    }
  }
}

TEST_CASE("when one rank fails, the ranks that wait in a collective stop and name it", "[comm]") {
  const auto ended = endings(4, [](Communicator& communicator) {
    Bench bench(communicator);
    std::vector<float> values(1000);
    if (communicator.rank() == 2) fail();
    Pending pending = bench.sum(values);
    bench.stream.wait(pending);
  });
  CHECK(ended == std::vector<std::string>{"peer 2", "peer 2", "ZL502 reported", "peer 2"});
}

TEST_CASE("a rank that fails with collectives under way waits for them and gives up the rest",
          "[comm]") {
  const auto ended = endings(3, [](Communicator& communicator) {
    Bench bench(communicator);
    std::vector<std::vector<float>> values(8, std::vector<float>(1000));
    std::vector<Pending> pendings;
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (communicator.rank() == 1 && i == 4) fail();
      pendings.push_back(bench.sum(values[i]));
    }
    for (Pending& pending : pendings) bench.stream.wait(pending);
  });
  CHECK(ended == std::vector<std::string>{"peer 1", "ZL502 reported", "peer 1"});
}

TEST_CASE("when all ranks fail at once, the lowest writes the message", "[comm]") {
  for (int repetition = 0; repetition < 50; ++repetition) {
    const auto ended = endings(4, [](Communicator&) { fail(); });
    CHECK(ended == std::vector<std::string>{"ZL502 reported", "ZL502 not reported",
                                            "ZL502 not reported", "ZL502 not reported"});
  }
}

TEST_CASE("a rank that computes for a while is waited for before the message is written",
          "[comm]") {
  const auto start = std::chrono::steady_clock::now();
  const auto ended = endings(3, [](Communicator& communicator) {
    if (communicator.rank() == 1) fail();
    std::this_thread::sleep_for(milliseconds(300));
    communicator.exchange({});
  });
  CHECK(ended == std::vector<std::string>{"peer 1", "ZL502 reported", "peer 1"});
  CHECK(std::chrono::steady_clock::now() - start >= milliseconds(300));
}

TEST_CASE("a message is written after two seconds though a rank does not answer, and once",
          "[comm]") {
  const auto ended = endings(3, [](Communicator& communicator) {
    if (communicator.rank() == 0) std::this_thread::sleep_for(milliseconds(2300));
    fail();
  });
  CHECK(ended ==
        std::vector<std::string>{"ZL502 not reported", "ZL502 reported", "ZL502 not reported"});
}

TEST_CASE("ranks that disagree about a length fail instead of copying", "[comm]") {
  const auto ended = endings(2, [](Communicator& communicator) {
    std::vector<std::byte> bytes(communicator.rank() == 0 ? 100 : 102);
    const int peer = 1 - communicator.rank();
    std::vector<std::byte> arriving(bytes.size());
    communicator.exchange({.sends = {{peer, bytes}}, .receives = {{peer, arriving}}});
  });
  CHECK(ended == std::vector<std::string>{"ZL701 reported", "ZL701 not reported"});
}

TEST_CASE("ranks that call a collective with other sizes are at different collectives", "[comm]") {
  const auto ended = endings(2, [](Communicator& communicator) {
    Bench bench(communicator);
    std::vector<float> values(communicator.rank() == 0 ? 100 : 102);
    Pending pending = bench.sum(values);
    bench.stream.wait(pending);
  });
  CHECK(ended == std::vector<std::string>{"ZL706 reported", "ZL706 not reported"});
}

TEST_CASE("collectives take the receive buffer when they are issued, or not at all", "[comm]") {
  const auto reports = run_ranks(2, [](Communicator& communicator) -> std::string {
    SumDevice device;
    Recorder recorder(communicator.rank());
    Ledger ledger("device", recorder, 199);
    CommStream stream(communicator, device, ledger, recorder);
    std::vector<float> values(100);
    const Proportional bucket({"reduce_bucket_size", 100});
    try {
      Pending pending =
          reduce_scatter(stream, {{values.data(), {0, 50, 100}}}, 1, "bucket", &bucket);
      return "fitted";
    } catch (const OutOfMemory& error) {
      return error.way_out();
    }
  });
  for (const std::string& report : reports) {
    CHECK(report.find("reduce_bucket_size 99 would have fitted") != std::string::npos);
  }
}

TEST_CASE("the log has one comm event for each collective, in order of waiting", "[comm]") {
  const auto logs = run_ranks(2, [](Communicator& communicator) {
    Bench bench(communicator);
    std::vector<std::string> seen;
    bench.recorder.observe([&](const Stamp&, const Event& event) {
      const auto* comm = std::get_if<CommEvent>(&event);
      if (comm == nullptr) return;
      const bool in_order = comm->issued <= comm->started && comm->started <= comm->finished &&
                            comm->issued <= comm->waited;
      seen.push_back(fmt::format("{} {} {} {} {} {}", comm->op, comm->elements, comm->dtype,
                                 comm->bytes_sent, comm->owner, in_order));
    });
    std::vector<float> first(10);
    std::vector<float> second(6);
    Pending one = bench.sum(first);
    Pending two = all_gather(bench.stream, {{second.data(), {0, 2, 6}}}, "second");
    bench.stream.wait(two);
    bench.stream.wait(one);
    return seen;
  });
  CHECK(logs[0] == std::vector<std::string>{"all_gather 6 fp32 8 second true",
                                            "all_reduce 10 fp32 40 sum true"});
  CHECK(logs[1] == std::vector<std::string>{"all_gather 6 fp32 16 second true",
                                            "all_reduce 10 fp32 40 sum true"});
}

}  // namespace
}  // namespace zerolab
