#include "tests/support/catch.hpp"
#include "tests/support/run_ranks.hpp"
#include "tests/support/trainings.hpp"

using namespace zerolab;
using namespace zerolab::test;

namespace {

Training mlp_small(int stage) {
  const ModelDescription model = describe_model("mlp-small");
  Training training = training_of(model, stage);
  training.steps = 2;
  training.settings.zero.reduce_bucket_size = run_defaults(model).reduce_bucket_size;
  return training;
}

/// The largest peak of any rank: what --device-memory must be at least.
Index need(int ranks, const Training& training) {
  Index most = 0;
  const RankReport report = run(ranks, training)[0];
  for (const MemoryUse& memory : report.memory) {
    most = std::max(most, memory.peak.total());
  }
  return most;
}

}  // namespace

TEST_CASE("at its need a stage trains, one byte below it is out of memory") {
  for (const int stage : {0, 1, 2, 3}) {
    Training training = training_of(tiny_transformer(), stage);
    training.device_memory = need(3, training);
    CHECK(run(3, training).size() == 3);
    training.device_memory -= 1;
    CHECK_THROWS_AS(run(3, training), OutOfMemory);
  }
}

TEST_CASE("the need is the same on every repetition") {
  for (const int stage : {0, 1, 2, 3}) {
    const Index first = need(4, training_of(tiny_transformer(), stage));
    for (int i = 0; i < 5; ++i) CHECK(need(4, training_of(tiny_transformer(), stage)) == first);
  }
}

TEST_CASE("stage 3 needs less than 2, 2 less than 1, 1 less than 0") {
  std::vector<Index> needs;
  for (const int stage : {3, 2, 1, 0}) needs.push_back(need(4, mlp_small(stage)));
  INFO(needs[0] << " " << needs[1] << " " << needs[2] << " " << needs[3]);
  CHECK(std::is_sorted(needs.begin(), needs.end()));
  CHECK(std::adjacent_find(needs.begin(), needs.end()) == needs.end());
}
