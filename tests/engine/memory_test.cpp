#include <algorithm>

#include "tests/support/catch.hpp"
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

TEST_CASE("model states take exactly the bytes of the formulas, in every stage at 1 to 4 ranks") {
  Index total = 0;
  for (const Index size : kOddSizes) total += size;
  for (const int ranks : {1, 2, 3, 4}) {
    const Index flat = up_to_multiple(total, 2 * ranks);  // Psi_pad
    Index pieces = 0;                                     // sum of ceil(numel / N)
    for (const Index size : kOddSizes) pieces += up_to_multiple(size, ranks) / ranks;

    // parameters, gradients, optimizer: 16; 8 + 8/N; 4 + 12/N; 16/N bytes a parameter
    const std::vector<std::array<Index, 3>> expected{
        {flat, flat, 2 * flat},
        {flat, flat, 2 * flat / ranks},
        {flat, flat / ranks, 2 * flat / ranks},
        {pieces, pieces, 2 * pieces},
    };
    for (const int stage : {0, 1, 2, 3}) {
      const std::array<Index, 3>& states = expected[static_cast<std::size_t>(stage)];
      for (const RankReport& report : run(ranks, training_of_odd_sizes(stage))) {
        REQUIRE(report.memory.size() == static_cast<std::size_t>(ranks));
        for (const MemoryUse& memory : report.memory) {
          for (const Usage* usage : {&memory.steady, &memory.peak, &memory.category_peak}) {
            INFO("stage " << stage << ", " << ranks << " ranks");
            CHECK((*usage)[Category::parameters] == states[0] * kBytes);
            CHECK((*usage)[Category::gradients] == states[1] * kBytes);
            CHECK((*usage)[Category::optimizer] == states[2] * kBytes);
          }
        }
        CHECK(report.parameters == total);
      }
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
