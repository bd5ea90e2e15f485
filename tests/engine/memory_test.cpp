#include <array>
#include <map>
#include <string>

#include "tests/support/catch.hpp"
#include "tests/support/run_ranks.hpp"
#include "tests/support/trainings.hpp"

using namespace zerolab;
using namespace zerolab::test;

namespace {

constexpr Index kBytes = 4;  // fp32

// The element counts of the parameters, worked out here by hand and not by the library.
const std::vector<Index> kOddSizes{33, 3, 3, 3, 1, 5, 5, 0, 55, 11};

Index up_to_multiple(Index value, Index multiple) {
  while (value % multiple != 0) ++value;
  return value;
}

}  // namespace

TEST_CASE("model states take exactly the bytes of the formulas, in every stage, type and N") {
  Index total = 0;
  for (const Index size : kOddSizes) total += size;
  for (const Dtype dtype : {Dtype::fp32, Dtype::bf16, Dtype::fp16}) {
    // Bytes of a weight, of a gradient, and of the optimizer's moments and masters. fp32 needs no
    // masters: 16; 8 + 8/N; 4 + 12/N; 16/N bytes a parameter. 16 bits: 16; 4 + 12/N; 2 + 14/N;
    // 16/N.
    const Index value = dtype == Dtype::fp32 ? 4 : 2;
    const Index optimizer = dtype == Dtype::fp32 ? 8 : 12;
    for (const int ranks : {1, 2, 3, 4, 8}) {
      const Index flat = up_to_multiple(total, 2 * ranks);  // Psi_pad
      Index pieces = 0;                                     // sum of ceil(numel / N)
      for (const Index size : kOddSizes) pieces += up_to_multiple(size, ranks) / ranks;
      const std::vector<std::array<Index, 3>> expected{
          {value * flat, value * flat, optimizer * flat},
          {value * flat, value * flat, optimizer * flat / ranks},
          {value * flat, value * flat / ranks, optimizer * flat / ranks},
          {value * pieces, value * pieces, optimizer * pieces},
      };
      for (const int stage : {0, 1, 2, 3}) {
        const std::array<Index, 3>& states = expected[static_cast<std::size_t>(stage)];
        Training training = training_of_odd_sizes(stage);
        training.steps = 3;
        training.settings.dtype = dtype;
        for (const RankReport& report : run(ranks, training)) {
          REQUIRE(report.memory.size() == static_cast<std::size_t>(ranks));
          for (const MemoryUse& memory : report.memory) {
            for (const Usage* usage : {&memory.steady, &memory.peak, &memory.category_peak}) {
              INFO(name_of(dtype) << ", stage " << stage << ", " << ranks << " ranks");
              CHECK((*usage)[Category::parameters] == states[0]);
              CHECK((*usage)[Category::gradients] == states[1]);
              CHECK((*usage)[Category::optimizer] == states[2]);
            }
          }
          CHECK(report.parameters == total);
        }
      }
    }
  }
}

TEST_CASE("gradients that are accumulated in fp32 take 4 bytes, whatever the weights have") {
  for (const int stage : {0, 1, 2, 3}) {
    Training training = training_of_odd_sizes(stage);
    const Usage fp32 = run(3, training)[0].memory[0].steady;
    training.settings.dtype = Dtype::bf16;
    training.settings.grad_accum_dtype = Dtype::fp32;
    const Usage bf16 = run(3, training)[0].memory[0].steady;
    CHECK(bf16[Category::gradients] == fp32[Category::gradients]);
    CHECK(2 * bf16[Category::parameters] == fp32[Category::parameters]);
  }
}

TEST_CASE("the peak of a run is made of allocations that are named, and of nothing else") {
  for (const Dtype dtype : {Dtype::fp32, Dtype::bf16, Dtype::fp16}) {
    for (const int stage : {0, 1, 2, 3}) {
      INFO(name_of(dtype) << ", stage " << stage);
      Training training = training_of(tiny_transformer(), stage);
      training.steps = 3;
      training.settings.dtype = dtype;
      training.settings.gradient_accumulation_steps = 2;
      const auto explained = run_ranks(3, [&](Communicator& communicator) {
        Recorder recorder(communicator.rank());
        std::map<std::string, Index, std::less<>> live, at_peak;
        Index total = 0, peak = 0;
        bool named = true;
        const auto change = [&](std::string_view category, std::string_view owner, Index bytes) {
          named = named && !owner.empty();
          live[std::string(category)] += bytes;
          total += bytes;
          if (total <= peak) return;
          peak = total;
          at_peak = live;
        };
        recorder.observe([&](const Stamp&, const Event& event) {
          if (const auto* alloc = std::get_if<AllocEvent>(&event)) {
            change(alloc->category, alloc->owner, alloc->bytes);
          }
          if (const auto* free = std::get_if<FreeEvent>(&event)) {
            change(free->category, free->owner, -free->bytes);
          }
        });
        const RankReport report = train(communicator, recorder, training);
        const Usage& told = report.memory[static_cast<std::size_t>(communicator.rank())].peak;
        for (std::size_t c = 0; c < kCategories; ++c) {
          named = named &&
                  at_peak[std::string(name_of(static_cast<Category>(c)))] == told.by_category[c];
        }
        return named && total == 0;
      });
      CHECK(explained == std::vector<bool>(3, true));
    }
  }
}

TEST_CASE("between steps only the model states are live, and nothing after the run") {
  for (const int stage : {0, 1, 2, 3}) {
    for (const RankReport& report : run(3, training_of(tiny_transformer(), stage))) {
      const Usage& steady = report.memory[0].steady;
      CHECK(steady.total() == steady[Category::parameters] + steady[Category::gradients] +
                                  steady[Category::optimizer]);
      CHECK(report.left_over.total() == 0);
    }
  }
}

TEST_CASE("activations and workspace are the same in all stages") {
  const Usage expected = run(2, training_of(tiny_transformer(), 0))[0].memory[0].category_peak;
  REQUIRE(expected[Category::activations] > 0);
  for (const int stage : {1, 2, 3}) {
    const Usage usage = run(2, training_of(tiny_transformer(), stage))[0].memory[0].category_peak;
    CHECK(usage[Category::activations] == expected[Category::activations]);
    CHECK(usage[Category::workspace] == expected[Category::workspace]);
  }
}

TEST_CASE("stage 3 gathers at most the largest module, stages 0 to 2 nothing") {
  for (const int stage : {0, 1, 2}) {
    CHECK(
        run(2, training_of_odd_sizes(stage))[0].memory[0].category_peak[Category::gather_buffers] ==
        0);
  }
  // head: 55 and 11 elements, padded to multiples of 4
  CHECK(run(4, training_of_odd_sizes(3))[0].memory[0].category_peak[Category::gather_buffers] ==
        (56 + 12) * kBytes);
}

TEST_CASE("the peak is one moment: its categories add up to the highest total") {
  for (const int stage : {0, 1, 2, 3}) {
    const MemoryUse memory = run(3, training_of(tiny_mlp(), stage))[0].memory[0];
    for (std::size_t c = 0; c < kCategories; ++c) {
      CHECK(memory.peak.by_category[c] <= memory.category_peak.by_category[c]);
    }
    CHECK(memory.peak.total() >= memory.steady.total());
  }
}
