#include "tests/support/catch.hpp"
#include "tests/support/trainings.hpp"

using namespace zerolab;
using namespace zerolab::test;

namespace {

constexpr Index kBytes = 4;  // fp32

Index up_to_multiple(Index value, Index multiple) {
  while (value % multiple != 0) ++value;
  return value;
}

// tiny_transformer by hand: elements, and how many modules use the parameter.
struct Counted {
  Index elements;
  Index uses;
};
std::vector<Counted> transformer_parameters() {
  std::vector<Counted> list{{19 * 9, 2}, {7 * 9, 1}};  // token embedding and head, positions
  for (int block = 0; block < 2; ++block) {
    for (const Index elements : {9, 9, 27 * 9, 27, 9 * 9, 9, 9, 9, 36 * 9, 36, 9 * 36, 9}) {
      list.push_back({elements, 1});
    }
  }
  list.push_back({9, 1});
  list.push_back({9, 1});
  return list;
}

Index sent(const RankReport& report, Op op) {
  const auto entry = report.comm.traffic.find(op);
  return entry == report.comm.traffic.end() ? 0 : entry->second.bytes_sent;
}

}  // namespace

TEST_CASE("every rank sends exactly the bytes of the formulas, by operation") {
  Index total = 0;
  for (const Counted& parameter : transformer_parameters()) total += parameter.elements;

  for (const int ranks : {1, 2, 3, 4}) {
    for (const Index accumulation : {Index{1}, Index{3}}) {
      const Index flat = up_to_multiple(total, 2 * ranks) * kBytes * (ranks - 1) / ranks;
      Index gathers = 0;
      Index reductions = 0;
      for (const Counted& parameter : transformer_parameters()) {
        const Index padded = up_to_multiple(parameter.elements, ranks) * kBytes;
        gathers += 2 * parameter.uses * padded * (ranks - 1) / ranks;
        reductions += padded * (ranks - 1) / ranks;
      }
      for (const int stage : {0, 1, 2, 3}) {
        Training training = training_of(tiny_transformer(), stage);
        training.steps = 2;
        training.settings.gradient_accumulation_steps = accumulation;
        for (const RankReport& report : run(ranks, training)) {
          INFO("stage " << stage << ", " << ranks << " ranks, " << accumulation << " micro-steps");
          const Index steps = training.steps;
          CHECK(sent(report, Op::all_reduce) == (stage == 0 ? steps * 2 * flat : 0));
          switch (stage) {
            case 0:
              CHECK(sent(report, Op::reduce_scatter) == 0);
              CHECK(sent(report, Op::all_gather) == 0);
              break;
            case 1:
              CHECK(sent(report, Op::reduce_scatter) == steps * flat);
              CHECK(sent(report, Op::all_gather) == steps * flat);
              break;
            case 2:
              CHECK(sent(report, Op::reduce_scatter) == steps * accumulation * flat);
              CHECK(sent(report, Op::all_gather) == steps * flat);
              break;
            default:
              CHECK(sent(report, Op::reduce_scatter) == steps * accumulation * reductions);
              CHECK(sent(report, Op::all_gather) == steps * accumulation * gathers);
          }
        }
      }
    }
  }
}

TEST_CASE("stage 1 reduces once a step, stages 2 and 3 every micro-step") {
  for (const int stage : {0, 1, 2, 3}) {
    Training training = training_of(tiny_mlp(), stage);
    training.steps = 5;
    training.settings.gradient_accumulation_steps = 4;
    training.settings.zero.reduce_bucket_size = Index{1} << 40;  // one bucket
    const RankReport report = run(2, training)[0];
    const Op op = stage == 0 ? Op::all_reduce : Op::reduce_scatter;
    CHECK(report.comm.traffic.at(op).calls == (stage < 2 ? 5 : 20));
  }
}
