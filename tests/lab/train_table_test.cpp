#include "lab/train_table.hpp"

#include <fmt/format.h>

#include "tests/support/catch.hpp"
#include "tests/support/thrown.hpp"
#include "tests/support/trainings.hpp"

namespace zerolab {
namespace {

RankReport report_of_three_steps() {
  RankReport report;
  report.steps.resize(3);
  for (std::size_t i = 0; i < 3; ++i) report.steps[i].step = static_cast<Index>(i) + 1;
  report.memory.resize(1);
  return report;
}

TEST_CASE("the table of a run says how prefetch went and how long communication stood in the way",
          "[lab]") {
  const Training training = test::training_of(test::tiny_mlp(), 3);
  RankReport report = report_of_three_steps();
  report.fetches = {30, 4, 1};
  report.comm.busy_seconds = 0.25;
  report.comm.exposed_seconds = 0.05;
  const std::string text = train_table(report, training, 2, Style::ascii);
  CHECK(contains(text, " prefetch: 30 hits, 4 misses, 1 unused\n"));
  CHECK(contains(text, " in collectives 250 ms, waited for 50.0 ms\n"));
}

TEST_CASE("the table of a run has a bar of its memory at the peak", "[lab]") {
  const Training training = test::training_of(test::tiny_mlp(), 2);
  RankReport report = report_of_three_steps();
  report.memory[0].peak[Category::parameters] = 3 << 20;
  report.memory[0].peak[Category::checkpoint] = 1 << 20;
  const std::string bar = std::string(63, 'P') + std::string(21, 'c');
  const std::string text = train_table(report, training, 1, Style::ascii);
  CHECK(contains(text,
                 " peak of rank 0: P parameters c checkpoint\n stage 2 " + bar + " 4.00 MiB\n"));
}

TEST_CASE("the table of a run is silent about what it did not do", "[lab]") {
  const Training training = test::training_of(test::tiny_mlp(), 0);
  const std::string text = train_table(report_of_three_steps(), training, 1, Style::ascii);
  CHECK_FALSE(contains(text, "prefetch"));
  CHECK_FALSE(contains(text, "in collectives"));
  CHECK_FALSE(contains(text, "saved"));
}

TEST_CASE("the table of a run has the latest checkpoints, and how long all of them took", "[lab]") {
  const Training training = test::training_of(test::tiny_mlp(), 0);
  RankReport report = report_of_three_steps();
  for (const Index step : {10, 20, 30}) {
    report.checkpoints.push_back({step, fmt::format("ck/global_step{}", step), 3 << 20, 0.25});
  }
  std::string text = train_table(report, training, 1, Style::ascii);
  CHECK(contains(text, " ck/global_step10          10  3.00 MiB                250 ms\n"));
  CHECK(contains(text, " ck/global_step30          30  3.00 MiB                250 ms\n"));
  CHECK_FALSE(contains(text, " before: "));

  report.checkpoints.push_back({30, "weights.safetensors", 1 << 20, 0.5});
  text = train_table(report, training, 1, Style::ascii);
  CHECK_FALSE(contains(text, "ck/global_step10"));
  CHECK(contains(text, " weights.safetensors          30  1.00 MiB                500 ms\n"));
  CHECK(contains(text, " and 1 before: training stood still for 1.25 s in all\n"));
}

TEST_CASE("the table of a run shows learning rates if they change", "[lab]") {
  const Training training = test::training_of(test::tiny_mlp(), 0);
  RankReport report = report_of_three_steps();
  CHECK_FALSE(contains(train_table(report, training, 1, Style::ascii), "learning rate"));
  report.steps[1].learning_rate = 0.0015F;
  const std::string text = train_table(report, training, 1, Style::ascii);
  CHECK(contains(text, " step  learning rate "));
  CHECK(contains(text, "    2         0.0015 "));
}

}  // namespace
}  // namespace zerolab
