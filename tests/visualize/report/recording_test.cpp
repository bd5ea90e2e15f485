// What a report keeps of the events of a rank.
#include "visualize/report/recording.hpp"

#include "lab/temporary_folder.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/reported.hpp"

namespace zerolab::test {
namespace {

using report::MemoryChange;
using report::StepView;

report::RankRecording recorded(const LoggedRun& run, const report::Wanted& wanted) {
  const TemporaryFolder folder;
  run.write(folder.path());
  report::Names names;
  return report::record(log::read_run_folder(folder.path()), 0, wanted, names);
}

double highest(const std::vector<MemoryChange>& memory) {
  double total = 0, most = 0;
  for (const MemoryChange& each : memory) most = std::max(most, total += each.bytes);
  return most;
}

double at_the_end(const std::vector<MemoryChange>& memory, log::Category category) {
  double total = 0;
  for (const MemoryChange& each : memory) total += each.category == category ? each.bytes : 0;
  return total;
}

}  // namespace

TEST_CASE("the steps that are wanted are kept in full, and the last one", "[report]") {
  const LoggedRun run = reported_run(3);
  const auto steps = [&](const report::Wanted& wanted) {
    std::vector<log::Count> kept;
    for (const StepView& view : recorded(run, wanted).views) kept.push_back(view.step);
    return kept;
  };
  CHECK(steps({.steps = {}}) == std::vector<log::Count>{2});
  CHECK(steps({.steps = {1, 7}}) == std::vector<log::Count>{1, 2});
  CHECK(steps({.steps = {0}}) == std::vector<log::Count>{0, 2});
  CHECK(steps({.steps = {1}, .in_full = false}).empty());
  CHECK(recorded(run, {.steps = {}}).steps.size() == 2);
}

TEST_CASE("a step that the log leaves in the middle has not ended", "[report]") {
  LoggedRun run = reported_run(3);
  run.summary = nullptr;
  run.logs[0].resize(run.find_last(0, {{"ev", "step"}}));
  const report::RankRecording recording = recorded(run, {.steps = {1}});
  REQUIRE(recording.views.size() == 2);
  CHECK(recording.views[0].ended);
  CHECK_FALSE(recording.views[1].ended);
  CHECK(recording.steps.size() == 1);
}

TEST_CASE("what follows a step is no part of it", "[report]") {
  LoggedRun run = reported_run(3);
  const std::size_t end = run.find_last(0, {{"ev", "step"}});
  const auto free = run.event(0, run.find_last(0, {{"ev", "free"}, {"step", 2}}, end));
  const auto changes = recorded(run, {.steps = {2}}).views.back().memory.size();
  run.insert(0, end + 1, free);
  CHECK(recorded(run, {.steps = {2}}).views.back().memory.size() == changes);
}

TEST_CASE("modules that run inside others lie below them", "[report]") {
  const report::RankRecording recording = recorded(reported_run(0), {.steps = {1}});
  for (const report::Span& outer : recording.views.front().spans) {
    for (const report::Span& inner : recording.views.front().spans) {
      const bool within = outer.start < inner.start && inner.end < outer.end;
      if (within) CHECK(inner.depth > outer.depth);
    }
  }
}

TEST_CASE("a step that is thinned keeps its highest moment and where it ends", "[report]") {
  StepView view;
  std::vector<double> live(log::kWords<log::Category>.size());
  for (int i = 0; i < 20'000; ++i) {  // up and down, higher in the middle
    const auto c = static_cast<std::size_t>(i % 7);
    const bool takes = (i * 31) % 17 < (i < 9'000 ? 12 : 5) || live[c] < 100;
    const double bytes = takes ? 10 + i % 13 : -std::min(live[c], 11.0);
    live[c] += bytes;
    view.memory.push_back({static_cast<double>(i), static_cast<log::Category>(c), bytes, 0});
    view.spans.push_back({0, log::VisitKind::forward, 1.0 * i, 1.0 * i + (i == 700 ? 50 : 1), 0});
    view.transitions.push_back({});
  }
  const StepView before = view;
  report::thin(view, 2'000);
  CHECK(view.memory.size() <= 1'000);
  CHECK(view.spans.size() == 500);
  CHECK(view.transitions.size() == 500);
  CHECK(highest(view.memory) == highest(before.memory));
  for (std::size_t c = 0; c < live.size(); ++c) {
    const auto category = static_cast<log::Category>(c);
    CHECK(at_the_end(view.memory, category) == at_the_end(before.memory, category));
  }
  CHECK(std::any_of(view.spans.begin(), view.spans.end(),
                    [](const report::Span& span) { return span.end - span.start == 50; }));
  CHECK(view.left_out == 3 * 20'000 - view.memory.size() - 1'000);

  StepView small = before;
  small.memory.resize(50);
  small.spans.resize(50);
  small.transitions.resize(50);
  report::thin(small, 2'000);
  CHECK(small.left_out == 0);
  CHECK(small.memory.size() == 50);
}

TEST_CASE("long names are cut between characters, and stay different", "[report]") {
  report::Names names;
  const std::string long_name(10'000, 'x');
  const std::size_t first = names[long_name + "a"];
  CHECK(names[long_name + "b"] != first);
  CHECK(names[long_name + "a"] == first);
  CHECK(names.shown()[first].size() < 200);
  CHECK(report::shortened("\u00e9\u00e9\u00e9", 3) == "\u00e9\u2026");
  CHECK(report::shortened("short", 5) == "short");
}

}  // namespace zerolab::test
