#include "stages/engine/reduce_bucket.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "stages/device/cpu/cpu_device.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/run_ranks.hpp"
#include "tests/support/scripted.hpp"
#include "tests/support/thrown.hpp"

namespace zerolab::test {
namespace {

/// A bucket on a rank of its own, and gradients to put in.
struct Bench {
  explicit Bench(Communicator& communicator, bool contiguous = false)
      : recorder(communicator.rank()),
        ledger("device", recorder),
        device(ledger),
        comm(communicator, device, ledger, recorder) {
    settings.zero.contiguous_gradients = contiguous;
    settings.zero.reduce_bucket_size = 10;
    recorder.set_step(4, 0);
  }

  /// A gradient in a buffer of its own, every element of this value.
  ReadyGradient gradient(Index elements, float value) {
    Buffer whole = ledger.allocate(elements * 4, Category::reduce_buffers, "gradient");
    std::fill_n(whole.floats(), elements, value);
    const Values data = whole.floats();
    return {&parameter, data, elements, {}, std::move(whole), true};
  }
  Index held() const { return ledger.live()[Category::reduce_buffers] / 4; }

  Recorder recorder;
  Ledger ledger;
  CpuDevice device;
  CommStream comm;
  Settings settings;
  Runtime runtime{device, ledger, recorder, comm, settings};
  Parameter parameter{"head.weight", 0, {7}, Initial::zeros()};
  ReduceBucket bucket{runtime, 1};
};

/// Runs on one rank, with a fresh bench.
template <typename Body>
void with_bench(bool contiguous, Body body) {
  run_ranks(1, [&](Communicator& communicator) {
    Bench bench(communicator, contiguous);
    body(bench);
    return 0;
  });
}

TEST_CASE("a reduce bucket refuses every call out of turn, with its state and the step",
          "[engine]") {
  using Call = std::pair<std::string, std::function<void(Bench&)>>;
  const std::vector<Call> calls{{"add", [](Bench& b) { b.bucket.add(b.gradient(1, 1), 10); }},
                                {"close", [](Bench& b) { b.bucket.close(); }},
                                {"start", [](Bench& b) { b.bucket.start({}); }},
                                {"wait", [](Bench& b) { b.bucket.wait(); }},
                                {"clear", [](Bench& b) { b.bucket.clear(); }},
                                {"give back", [](Bench& b) { b.bucket.give_back_buffer(); }}};
  // what may be called in each state; the calls that lead there
  struct Known {
    BucketState state;
    std::vector<std::string> legal;
  };
  const std::vector<Known> states{{BucketState::free, {"add", "give back"}},
                                  {BucketState::filling, {"add", "close"}},
                                  {BucketState::ready, {"start"}},
                                  {BucketState::reducing, {"wait", "clear"}}};
  for (std::size_t steps = 0; steps < states.size(); ++steps) {
    for (const Call& call : calls) {
      std::optional<Error> error;
      BucketState before = BucketState::free;
      with_bench(false, [&](Bench& bench) {
        for (std::size_t i = 0; i < steps; ++i) calls[i].second(bench);
        before = bench.bucket.state();
        error = thrown_by([&] { call.second(bench); });
      });
      const Known& known = states[steps];
      const bool legal =
          std::find(known.legal.begin(), known.legal.end(), call.first) != known.legal.end();
      INFO(name_of(known.state) << ", " << call.first);
      CHECK(before == known.state);
      CHECK(error.has_value() != legal);
      if (!error) continue;
      CHECK(error->code() == Code::bucket_state);
      CHECK(contains(error->what(),
                     fmt::format("reduce bucket 1 on rank 0 is {} when", name_of(known.state))));
      CHECK(contains(error->what(), "(step 4)"));
    }
  }
}

TEST_CASE("with contiguous_gradients the bucket's own buffer takes the gradients", "[engine]") {
  std::vector<float> in_bucket;
  std::vector<Index> held;
  with_bench(true, [&](Bench& bench) {
    bench.bucket.add(bench.gradient(3, 1), 10);
    held.push_back(bench.held());
    bench.bucket.add(bench.gradient(7, 2), 10);
    held.push_back(bench.held());
    const Bucket& bucket = bench.bucket.close();
    const float* data = bucket[0].data;
    in_bucket.assign(data, data + 10);
    bench.bucket.start({});
    bench.bucket.clear();
    held.push_back(bench.held());
    bench.bucket.give_back_buffer();
    held.push_back(bench.held());
  });
  CHECK(held == std::vector<Index>{10, 10, 10, 0});
  CHECK(in_bucket == std::vector<float>{1, 1, 1, 2, 2, 2, 2, 2, 2, 2});
}

TEST_CASE(
    "a gradient larger than the bucket stays in its own buffer, as all do without "
    "contiguous_gradients",
    "[engine]") {
  for (const bool contiguous : {true, false}) {
    Index held = 0;
    std::vector<float> in_bucket;
    with_bench(contiguous, [&](Bench& bench) {
      bench.bucket.add(bench.gradient(contiguous ? 11 : 5, 3), 10);
      held = bench.held();
      const Bucket& bucket = bench.bucket.close();
      const float* data = bucket[0].data;
      in_bucket.assign(data, data + 5);
    });
    CHECK(held == (contiguous ? 11 : 5));
    CHECK(in_bucket == std::vector<float>(5, 3));
  }
}

TEST_CASE("stages 2 and 3 hold the buckets that the settings say, and one gradient beside them",
          "[engine]") {
  // four weights of 40 elements; two fit into a bucket of 100
  const auto held = [](int stage, bool contiguous, bool overlap) {
    Training training = training_of_script(
        std::vector<Shape>(4, Shape{40}),
        [](Index, const Moment& m) { return static_cast<float>(m.rank); }, stage);
    training.settings.zero.contiguous_gradients = contiguous;
    training.settings.zero.overlap_comm = overlap;
    training.settings.zero.reduce_bucket_size = 100;
    training.steps = 2;
    // alone: nothing is received
    return run(1, training)[0].memory[0].category_peak[Category::reduce_buffers] / 4;
  };
  for (const int stage : {2, 3}) {
    INFO("stage " << stage);
    CHECK(held(stage, true, false) == 100 + 40);
    CHECK(held(stage, true, true) == 2 * 100 + 40);
    CHECK(held(stage, false, false) == 2 * 40 + 40);
    CHECK(held(stage, false, true) == 2 * 80);
  }
}

}  // namespace
}  // namespace zerolab::test
