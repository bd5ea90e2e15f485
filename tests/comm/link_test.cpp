#include "stages/comm/link.hpp"

#include <chrono>

#include "tests/comm/conformance.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/run_ranks.hpp"

namespace zerolab {
namespace {

/// Never talks to anybody.
class Nobody : public Communicator {
 public:
  int rank() const override { return 0; }
  int size() const override { return 3; }
  std::string description() const override { return "nobody"; }
  void exchange(const Exchange& /*round*/) override {}
  bool announce_failure() override { return true; }
  void acknowledge_failure() override {}
  std::vector<std::string> whereabouts() const override { return {}; }
};

Exchange round_of(std::vector<std::byte>& bytes, std::size_t sent, std::size_t received) {
  const std::span<std::byte> all(bytes);
  Exchange round;
  round.sends = {{1, all.first(sent / 2)}, {2, all.first(sent - sent / 2)}};
  round.receives = {{1, all.first(received)}};
  return round;
}

TEST_CASE("a round costs its latency and the larger of what is sent and received", "[comm]") {
  Nobody nobody;
  const LinkCommunicator link(nobody, {.bandwidth = 1e6, .latency = 0.5});
  std::vector<std::byte> bytes(5000);
  CHECK(link.cost(round_of(bytes, 3000, 1000)) == Approx(0.5 + 0.003));
  CHECK(link.cost(round_of(bytes, 1001, 5000)) == Approx(0.5 + 0.005));
  CHECK(link.cost(round_of(bytes, 0, 0)) == Approx(0.5));
  CHECK(link.cost({}) == 0);  // a rank alone
  const LinkCommunicator only_latency(nobody, {.latency = 0.25});
  CHECK(only_latency.cost(round_of(bytes, 3000, 1000)) == Approx(0.25));
  CHECK_FALSE(Link{}.slows());
}

TEST_CASE("completion is held back for as long as the link would take", "[comm]") {
  Nobody nobody;
  LinkCommunicator link(nobody, {.bandwidth = 100e3, .latency = 0.01});
  std::vector<std::byte> bytes(1000);
  const auto start = std::chrono::steady_clock::now();
  link.exchange(round_of(bytes, 1000, 1000));
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  CHECK(took.count() >= 0.02);
}

TEST_CASE("collectives over an emulated link are what they are without it", "[comm]") {
  for (const int ranks : {1, 2, 3, 4}) {
    const auto plain = run_ranks(ranks, check_conformance);
    const auto slow = run_ranks(ranks, [](Communicator& communicator) {
      LinkCommunicator link(communicator, {.bandwidth = 1e9, .latency = 1e-6});
      return check_conformance(link);
    });
    for (std::size_t rank = 0; rank < slow.size(); ++rank) {
      CHECK(slow[rank].problems.empty());
      CHECK(slow[rank].hash == plain[rank].hash);
    }
  }
}

}  // namespace
}  // namespace zerolab
