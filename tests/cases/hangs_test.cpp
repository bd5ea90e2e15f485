// Kind d: ranks that do not come to the same collectives (docs/cases.md).

#include <array>
#include <thread>

#include "stages/stages.hpp"
#include "tests/support/accident.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/run_job.hpp"
#include "tests/support/run_ranks.hpp"
#include "tests/support/sandwich.hpp"
#include "tests/support/sum_device.hpp"
#include "tests/support/thrown.hpp"

using namespace zerolab;
using namespace zerolab::test;

namespace {

/// Two experts of equal size; `choose` says which one runs.
class Experts : public Module {
 public:
  using Choose = std::function<bool(int rank, Index step)>;

  Experts(ParameterSet& parameters, Choose choose)
      : Module("experts"),
        choose_(std::move(choose)),
        first_(parameters, "first", kSandwichWidth, kSandwichWidth, Initial::normal(1)),
        second_(parameters, "second", kSandwichWidth, kSandwichWidth, Initial::normal(1)) {
    adopt(first_);
    adopt(second_);
  }

 protected:
  Tensor do_forward(const Tensor& input) override { return chosen().forward(input); }
  Tensor do_backward(const Tensor& output_gradient) override {
    return chosen().backward(output_gradient);
  }

 private:
  Linear& chosen() {
    const Recorder& recorder = context().recorder;
    return choose_(recorder.rank(), recorder.step()) ? first_ : second_;
  }

  Choose choose_;
  Linear first_, second_;
};

/// Both ranks pick the first expert in step 1; afterwards rank 1 picks the other one.
Training with_experts(int stage) {
  const auto choose = [](int rank, Index step) { return step < 2 || rank == 0; };
  Training training = training_of_sandwich(
      [&](ParameterSet& parameters) { return std::make_unique<Experts>(parameters, choose); },
      stage);
  training.settings.zero.reduce_bucket_size = 1;
  return training;
}

constexpr std::chrono::milliseconds kPatience{500};

JobEnd train_job(int ranks, const std::function<Training(int rank)>& training) {
  const auto body = [&](Communicator& communicator) {
    Recorder recorder(communicator.rank());
    train(communicator, recorder, training(communicator.rank()));
  };
  return run_job(ranks, body, {.timeout = kPatience});
}

}  // namespace

TEST_CASE("B51: ranks that pick different experts are told so, by rank, weight and module",
          "[cases]") {
  for (const bool check : {false, true}) {
    INFO((check ? "checked" : "unchecked"));
    Training training = with_experts(3);
    training.check_collectives = check;
    const JobEnd ended = train_job(2, [&](int) { return training; });
    INFO(ended.message);
    CHECK(ended.status == 7);
    // Unchecked, their messages may pass each other by: then the watchdog ends it.
    CHECK((contains(ended.message, "ZL706") || (!check && contains(ended.message, "ZL705"))));
    CHECK(contains(ended.message, "of 'first.weight .. first.bias (2 parameters)'"));
    CHECK(contains(ended.message, "of 'second.weight .. second.bias (2 parameters)'"));
    CHECK(contains(ended.message, "(step 2, micro-step 0, forward of 'first')"));
    CHECK(contains(ended.message, "\n  rank 0 "));
    CHECK(contains(ended.message, "\n  rank 1 "));
  }
}

TEST_CASE("B51: without sharded weights, or in a leaf module, ranks may pick different experts",
          "[cases]") {
  const auto stage_0 = bits(run(2, with_experts(0))[0]);
  for (const int stage : {1, 2}) CHECK(bits(run(2, with_experts(stage))[0]) == stage_0);
  for (const int stage : {0, 1, 2, 3}) {
    INFO("stage " << stage);
    Training training = with_experts(stage);
    training.settings.zero.leaf_modules.classes = {"Experts"};
    training.check_collectives = true;
    CHECK(bits(run(2, training)[0]) == stage_0);
  }
}

TEST_CASE("B52: ranks with different data make the same passes and write the same text",
          "[cases]") {
  for (const int stage : {0, 1, 2, 3}) {
    INFO("stage " << stage);
    Training training = training_of(tiny_transformer(), stage);
    training.check_collectives = true;
    training.steps = 4;
    training.generate = Sampling{.count = 11, .temperature = 1, .seed = 3, .prompt = "\1"};
    training.generate_every = 2;
    std::array<int, 4> passes{};
    const auto reports = run_ranks(4, [&](Communicator& communicator) {
      Recorder recorder(communicator.rank());
      int& mine = passes[static_cast<std::size_t>(communicator.rank())];
      recorder.observe([&mine](const Stamp& stamp, const Event& event) {
        const auto* span = std::get_if<SpanEvent>(&event);
        if (stamp.phase == Phase::generate && span != nullptr && span->module == "head") ++mine;
      });
      return train(communicator, recorder, training);
    });
    CHECK(passes == std::array{22, 22, 22, 22});
    for (const RankReport& report : reports) {
      REQUIRE(report.generations.size() == 2);
      for (const std::size_t i : {0U, 1U}) {
        CHECK(report.generations[i].text.size() == 11);
        CHECK(report.generations[i].text == reports[0].generations[i].text);
      }
    }
  }
}

TEST_CASE("B52: ranks that are told to write texts of different lengths are refused at once",
          "[cases]") {
  for (const int stage : {0, 3}) {
    INFO("stage " << stage);
    const auto start = std::chrono::steady_clock::now();
    const JobEnd ended = train_job(4, [stage](int rank) {
      Training training = training_of(tiny_transformer(), stage);
      training.generate = Sampling{.count = rank == 2 ? 12 : 11, .seed = 3};
      if (rank == 3) training.generate.reset();
      return training;
    });
    INFO(ended.message);
    CHECK(ended.status == 2);
    CHECK(contains(ended.message, "ZL210"));
    CHECK(contains(ended.message, "\n  generate.count: 11 on rank 0, 12 on rank 2"));
    CHECK(contains(ended.message, "\n  generate.count: 11 on rank 0, nothing on rank 3"));
    CHECK_FALSE(contains(ended.message, "on rank 1"));
    CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(2));
  }
}

TEST_CASE("B53: a rank with more steps than the others is named, and who has left the loop",
          "[cases]") {
  for (const int stage : {0, 1, 2, 3}) {
    INFO("stage " << stage);
    const JobEnd ended = train_job(4, [stage](int rank) {
      Training training = training_of_odd_sizes(stage);
      training.steps = rank == 2 ? 8 : 4;
      return training;
    });
    INFO(ended.message);
    CHECK(ended.status == 7);
    CHECK(contains(ended.message, "ZL706"));
    CHECK(contains(ended.message, "(step 5, micro-step 0, "));
    CHECK(contains(ended.message, "of 'memory report'"));
  }
}

TEST_CASE("B55: other sizes, operations and a silent swap of equal gathers are all refused",
          "[cases]") {
  struct Call {
    std::string owner;
    Index elements;
    bool gather;
  };
  const auto run_calls = [](const std::vector<Call>& rank0, const std::vector<Call>& rank1) {
    const auto body = [&](Communicator& communicator) {
      Recorder recorder(communicator.rank());
      Ledger ledger("device", recorder);
      SumDevice device;
      CommStream stream(communicator, device, ledger, recorder);
      for (const Call& call : communicator.rank() == 0 ? rank0 : rank1) {
        std::vector<float> values(static_cast<std::size_t>(call.elements));
        const Run run{values.data(), {0, call.elements / 2, call.elements}};
        Pending pending = call.gather ? all_gather(stream, {run}, call.owner)
                                      : all_reduce(stream, {run}, 1, call.owner);
        stream.wait(pending);
      }
    };
    return run_job(2, body, {.timeout = kPatience});
  };
  const Call one{"one.weight", 64, true}, two{"two.weight", 64, true};
  for (const JobEnd& ended :
       {run_calls({one, two}, {two, one}), run_calls({one}, {{"one.weight", 32, true}}),
        run_calls({one}, {{"one.weight", 64, false}})}) {
    INFO(ended.message);
    CHECK(ended.status == 7);
    CHECK(contains(ended.message, "ZL706"));
    CHECK(contains(ended.message, "rank 0 waits in all_gather 1 of 'one.weight', 64 elements"));
    CHECK(contains(ended.message, "rank 1 waits in "));
  }
  CHECK(run_calls({one, two}, {one, two}).status == 0);
}

TEST_CASE("B58: when one rank dies the run ends at once with that rank's error", "[cases]") {
  for (const Occasion occasion : {Occasion::forward, Occasion::step}) {
    const auto start = std::chrono::steady_clock::now();
    Training training = training_with_accident(
        occasion, 2, [](Ledger&) { throw std::runtime_error("rank 2 has had enough"); }, 3);
    const JobEnd ended = train_job(4, [&](int) { return training; });
    CHECK(ended.status == 1);
    CHECK(ended.message.rfind("ZL101: rank 2 has had enough\n", 0) == 0);
    CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(2));
  }
}
