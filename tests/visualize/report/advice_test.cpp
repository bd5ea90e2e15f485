// What a report says in words.
#include "visualize/report/advice.hpp"

#include "tests/support/catch.hpp"

namespace zerolab::test {
namespace {

using report::Remark;
using report::RunData;

/// A run of stage 3 of which half a step waits for gathers: the module reads 40 elements at 100 us
/// and 60 more at 130 us, and stands for each of them for 25 us.
RunData waiting_run() {
  RunData run{};
  run.folder.run.stage = 3;
  run.folder.run.world_size = 2;
  run.folder.summary = log::Summary{};
  run.folder.summary->memory.resize(2);
  run.details.settings = {
      {"zero_optimization.stage3_prefetch_bucket_size", "50", "flag", true},
      {"zero_optimization.overlap_comm", "true", "flag", true},
  };
  run.shown_step = 2;
  report::RankRecording rank;
  rank.there = rank.in_full = true;
  for (const log::Count step : {1U, 2U}) {
    report::StepFigures figures{.step = step, .result = {}};
    figures.duration = 100;
    figures.gather_wait = step == 1 ? 90 : 43;  // the first step does not count
    figures.result.loss = 2.0 - static_cast<double>(step) / 10;
    rank.steps.push_back(figures);
  }
  report::StepView view;
  view.step = 2;
  const auto gather = [](log::Count elements, double waited, double told) {
    report::Transfer transfer;
    transfer.op = log::Op::all_gather;
    transfer.elements = elements;
    transfer.waited = waited;
    transfer.told = told;
    return transfer;
  };
  view.transfers = {gather(40, 100, 125), gather(60, 120, 145), gather(7, 10, 10)};
  rank.views = {view};
  run.ranks = {rank, rank};
  return run;
}

std::vector<std::string> texts(const RunData& run, Remark::Kind kind) {
  std::vector<std::string> result;
  for (const Remark& remark : report::remarks_on(run)) {
    if (remark.kind == kind) result.push_back(remark.text);
  }
  return result;
}

void set(RunData& run, const std::string& key, const std::string& value) {
  std::erase_if(run.details.settings, [&](const log::Setting& each) { return each.key == key; });
  run.details.settings.push_back({key, value, "flag", true});
}

}  // namespace

TEST_CASE("a report says how far to raise the prefetch bucket of a run that waits", "[report]") {
  const RunData run = waiting_run();
  CHECK(report::prefetch_to_hide_waits(run) == 100);  // 60, and the 40 needed in the 25 us before
  CHECK(texts(run, Remark::Kind::warning) ==
        std::vector<std::string>{
            "Stage 3 is slow here because 43% of a step waits for gathers. Raise "
            "stage3_prefetch_bucket_size to at least 100 (it is 50)."});
}

TEST_CASE("a report does not advise what would not help", "[report]") {
  RunData run = waiting_run();
  set(run, "zero_optimization.stage3_prefetch_bucket_size", "100");
  REQUIRE(texts(run, Remark::Kind::warning).size() == 1);
  CHECK(texts(run, Remark::Kind::warning)[0].find("a faster link") != std::string::npos);
  CHECK(texts(run, Remark::Kind::warning)[0].find("little compute left") != std::string::npos);
  for (report::RankRecording& rank : run.ranks) rank.steps[1].transfer = 60;
  CHECK(texts(run, Remark::Kind::warning)[0].find("take as long") != std::string::npos);
  set(run, "zero_optimization.overlap_comm", "false");
  REQUIRE(texts(run, Remark::Kind::warning).size() == 1);
  CHECK(texts(run, Remark::Kind::warning)[0].find("overlap_comm is false") != std::string::npos);
}

TEST_CASE("a run that hardly waits gets no warning for it", "[report]") {
  RunData run = waiting_run();
  for (report::RankRecording& rank : run.ranks) rank.steps[1].gather_wait = 9;
  CHECK(texts(run, Remark::Kind::warning).empty());
}

TEST_CASE("a report says whether the peak fits the budget tightly or loosely", "[report]") {
  RunData run = waiting_run();
  for (report::RankRecording& rank : run.ranks) rank.steps[1].gather_wait = 0;
  run.folder.summary->memory[1].peak[0] = 95;
  const auto words_at = [&](log::Count budget, Remark::Kind kind) {
    run.folder.run.device_memory = budget;
    const std::vector<std::string> all = texts(run, kind);
    return all.empty() ? std::string() : all[0];
  };
  CHECK(words_at(100, Remark::Kind::warning).find("takes 95% of the budget") != std::string::npos);
  CHECK(words_at(200, Remark::Kind::hint).find("takes 48% of the budget") != std::string::npos);
  CHECK(words_at(120, Remark::Kind::warning).empty());
  CHECK(words_at(120, Remark::Kind::hint).empty());
}

TEST_CASE("a report says when a loss is not finite, goes up, or steps are skipped", "[report]") {
  RunData run = waiting_run();
  for (report::RankRecording& rank : run.ranks) rank.steps[1].gather_wait = 0;
  run.ranks[0].steps[1].result.loss = 3;
  REQUIRE(texts(run, Remark::Kind::warning).size() == 1);
  CHECK(texts(run, Remark::Kind::warning)[0].find("went up, from 1.9000 to 3.0000") !=
        std::string::npos);
  run.ranks[0].steps[1].result.loss = std::nullopt;
  REQUIRE(texts(run, Remark::Kind::warning).size() == 1);
  CHECK(texts(run, Remark::Kind::warning)[0] == "The loss is not a finite number from step 2 on.");
  run.ranks[0].steps[1].result.loss = 1;
  run.ranks[0].steps[1].result.skipped = true;
  REQUIRE(texts(run, Remark::Kind::hint).size() == 1);
  CHECK(texts(run, Remark::Kind::hint)[0].find("1 of 2 steps were skipped") != std::string::npos);
}

TEST_CASE("a report tells a failure first, with its way out", "[report]") {
  RunData run = waiting_run();
  run.folder.failure = {"ZL301", 1, "rank 1 is out of memory\n  budget 5"};
  run.failure = {"a larger budget", log::FailureDetails::OutOfMemory{}};
  CHECK(report::remarks_on(run).front().kind == Remark::Kind::failure);
  CHECK(report::remarks_on(run).front().text ==
        "The run ended with ZL301: rank 1 is out of memory. Way out: a larger budget.");
}

}  // namespace zerolab::test
