#include "lab/train_table.hpp"

#include "tests/support/catch.hpp"
#include "tests/support/thrown.hpp"
#include "tests/support/trainings.hpp"

namespace zerolab {
namespace {

RankReport report_of_three_steps() {
  RankReport report;
  report.steps.resize(3);
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

TEST_CASE("the table of a run is silent about what it did not do", "[lab]") {
  const Training training = test::training_of(test::tiny_mlp(), 0);
  const std::string text = train_table(report_of_three_steps(), training, 1, Style::ascii);
  CHECK_FALSE(contains(text, "prefetch"));
  CHECK_FALSE(contains(text, "in collectives"));
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
