#include "tests/device/support.hpp"
#include "tests/support/catch.hpp"

using namespace zerolab;
using namespace zerolab::test;

namespace {

// The weight gradient of a layer norm: oneDNN sums it over rows in a scratchpad.
void needs_scratchpad(Device& device) {
  const Floats in = random_floats(64 * 64, 1);
  Floats dx(in.size()), dgamma(64), dbeta(64);
  device.layer_norm_backward(64, 64, 1e-5F, in.data(), in.data(), in.data(), in.data(), in.data(),
                             dx.data(), dgamma.data(), dbeta.data());
}

}  // namespace

TEST_CASE("a scratchpad is in the ledger during the call, by name, and gone afterwards") {
  CpuBench bench;
  std::vector<std::string> taken;
  Index balance = 0;
  bench.recorder.observe([&](const Stamp&, const Event& event) {
    if (const auto* alloc = std::get_if<AllocEvent>(&event)) {
      taken.emplace_back(alloc->owner);
      CHECK(alloc->category == "workspace");
      balance += alloc->bytes;
    }
    if (const auto* free = std::get_if<FreeEvent>(&event)) balance -= free->bytes;
  });
  needs_scratchpad(bench.device);
  needs_scratchpad(bench.device);
  CHECK(taken == std::vector<std::string>(2, "layer norm backward scratchpad"));
  CHECK(balance == 0);
  CHECK(bench.ledger.live().total() == 0);
  CHECK(bench.ledger.category_peak()[Category::workspace] > 0);
}

TEST_CASE("a scratchpad beyond the budget is out of memory, and the device goes on") {
  Recorder recorder(0);
  Ledger ledger("device", recorder, 1);
  CpuDevice device(ledger);
  CHECK_THROWS_AS(needs_scratchpad(device), OutOfMemory);
  CHECK(ledger.live().total() == 0);
  Floats y(1);
  const Floats x{0};
  device.gelu(1, x.data(), y.data());
  CHECK(y[0] == 0);
}

TEST_CASE("the device names its library, instruction set and threads") {
  CpuBench bench;
  const std::string text = bench.device.description();
  CHECK(text.find("cpu (oneDNN ") == 0);
  CHECK(text.find(", 1 thread)") != std::string::npos);
  Recorder recorder(0);
  Ledger ledger("device", recorder);
  CHECK(CpuDevice(ledger, 2).description().find(", 2 threads)") != std::string::npos);
}
