// The theory that the report puts beside what was measured, held against runs.
#include "visualize/report/theory.hpp"

#include "lab/temporary_folder.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/reported.hpp"
#include "tests/support/trainings.hpp"

namespace zerolab::test {
namespace {

struct Read {
  report::Theory theory;
  log::Summary summary;
};

Read read(int ranks, const Training& training) {
  LoggedRun run = logged_run(ranks, training);
  run.run["settings"] = settings_of_run(training);
  const TemporaryFolder folder;
  run.write(folder.path());
  const log::RunFolder logged = log::read_run_folder(folder.path());
  return {report::theory_of(logged.run, log::read_run_details(folder.path()),
                            log::read_summary_details(folder.path()).dtype),
          *logged.summary};
}

double held(const log::Summary& summary, log::Category category, std::size_t rank) {
  return static_cast<double>(summary.memory[rank].steady[static_cast<std::size_t>(category)]);
}

void check_states(const Read& read, int ranks) {
  REQUIRE(read.theory.states);
  for (std::size_t rank = 0; rank < static_cast<std::size_t>(ranks); ++rank) {
    CHECK(held(read.summary, log::Category::parameters, rank) == read.theory.states->parameters);
    CHECK(held(read.summary, log::Category::gradients, rank) == read.theory.states->gradients);
    CHECK(held(read.summary, log::Category::optimizer, rank) == read.theory.states->optimizer);
    CHECK(held(read.summary, log::Category::gather_buffers, rank) == read.theory.states->whole);
  }
}

double sent(const log::Summary& summary, log::Op op) {
  const auto found = summary.comm.find(op);
  return found == summary.comm.end() ? 0 : static_cast<double>(found->second.bytes_sent);
}

}  // namespace

TEST_CASE("the report's theory of model states is what runs of every stage hold", "[report]") {
  for (const int ranks : {1, 3, 4}) {
    for (int stage = 0; stage <= 3; ++stage) {
      for (const Dtype dtype : {Dtype::fp32, Dtype::bf16}) {
        Training training = training_of_odd_sizes(stage);
        training.steps = 1;
        training.settings.dtype = dtype;
        training.settings.zero.param_persistence_threshold = 4;  // some stay whole
        CAPTURE(ranks, stage, name_of(dtype));
        check_states(read(ranks, training), ranks);
      }
    }
  }
}

TEST_CASE("the report's theory of traffic is what runs of every stage send", "[report]") {
  for (int stage = 0; stage <= 3; ++stage) {
    for (const Index micro_steps : {1, 3}) {
      Training training = training_of(tiny_transformer(), stage);
      training.steps = 2;
      training.settings.gradient_accumulation_steps = micro_steps;
      training.settings.zero.prefetch_bucket_size = 0;
      training.settings.zero.max_reuse_distance = 0;
      training.settings.zero.param_persistence_threshold = 0;
      CAPTURE(stage, micro_steps);
      const auto [theory, summary] = read(3, training);
      CHECK(theory.sent.size() == (stage == 0 ? 1 : 2));
      for (const report::Theory::Row& row : theory.sent) {
        CAPTURE(name_of(row.op));
        CHECK(sent(summary, row.op) == Approx(2 * row.bytes).epsilon(1e-12));
      }
      CHECK(theory.exact == (stage < 3));
    }
  }
}

TEST_CASE("the report has no theory of states where the optimizer is not known", "[report]") {
  log::Run run;
  run.parameters = {{"w", 6, true, false}};
  CHECK_FALSE(report::theory_of(run, {}, "fp32").states);
  log::RunDetails details{};
  details.settings = {{"optimizer.type", "SGD", "flag", true},
                      {"optimizer.params.momentum", "0.9", "flag", true}};
  REQUIRE(report::theory_of(run, details, "fp32").states);
  CHECK(report::theory_of(run, details, "fp32").states->formula == "12");
  CHECK(report::theory_of(run, details, "fp32").states->optimizer == 4 * 6);
}

}  // namespace zerolab::test
