#include "visualize/diagram/sequence.hpp"

#include <fmt/format.h>

#include "tests/support/catch.hpp"
#include "tests/support/thrown.hpp"
#include "tests/support/written_run.hpp"
#include "tests/support/xml.hpp"
#include "visualize/diagram/render.hpp"

namespace zerolab::test {
namespace {

std::string why_not(const WrittenRun& written, const diagram::SequenceOptions& options) {
  try {
    diagram::sequence_dot({written.run}, options);
    return "";
  } catch (const log::Unreadable& unreadable) {
    return unreadable.what();
  }
}

/// Where the texts stand on the page, from top to bottom; each must be there once after the last.
void check_order(const std::string& dot, const std::vector<std::string>& texts) {
  std::size_t at = 0;
  for (const std::string& text : texts) {
    INFO(text);
    const std::size_t found = dot.find(text, at);
    CHECK(found != std::string::npos);
    if (found != std::string::npos) at = found;
  }
}

TEST_CASE("one step of stage 0 is drawn from forward to its end", "[diagram]") {
  const WrittenRun written(run_of_stage(0));
  const std::string dot = diagram::sequence_dot({written.run}, {.times = false});
  check_order(
      dot, {"<b>step 2</b>", "<b>stage 0, rank 0 of 3</b>", "<b>forward</b>", "label=<embedding>",
            "label=<layers.0>", "<b>backward</b>", "label=<layers.0>", "all_reduce <b>",
            "<b>step</b>", "control <b>loss and gradient norm</b>", "step done"});
  CHECK_FALSE(contains(dot, "waited"));
  CHECK_FALSE(contains(dot, "releases"));
  CHECK_FALSE(contains(dot, "label=<mlp>"));  // only what runs inside of it
  CHECK(fault_in_xml(diagram::render(dot, "svg")) == "");
}

TEST_CASE("one step of stage 3 shows each gather before its module, and the release after it",
          "[diagram]") {
  const WrittenRun written(run_of_stage(3));
  const std::string dot = diagram::sequence_dot({written.run}, {.rank = 2, .step = 1});
  check_order(
      dot, {"<b>step 1</b>", "rank 2 of 3", "<b>forward</b>", "all_gather <b>embedding.weight</b>",
            "label=<embedding>", "releases embedding.weight", "<b>backward</b>",
            "reduce_scatter <b>", "<b>publish</b>"});
}

TEST_CASE("every collective of a step goes out and comes back in its picture", "[diagram]") {
  for (const int stage : {0, 1, 2, 3}) {
    const LoggedRun logged = run_of_stage(stage, 4);
    const WrittenRun written(logged);
    std::size_t collectives = 0;
    for (std::size_t i = 0; i < logged.logs[1].size(); ++i) {
      const LoggedRun::Json event = logged.event(1, i);
      collectives += event["ev"] == "comm" && event["step"] == 2 && event["phase"] != "tear_down" &&
                     event["phase"] != "evaluate";
    }
    const std::string dot = diagram::sequence_dot({written.run}, {.rank = 1});
    std::size_t bars = 0, arrows = 0;
    for (std::size_t at = dot.find("class=\"transfer\""); at != std::string::npos;
         at = dot.find("class=\"transfer\"", at + 1)) {
      ++bars;
    }
    for (std::size_t at = dot.find("arrowhead=normal"); at != std::string::npos;
         at = dot.find("arrowhead=normal", at + 1)) {
      ++arrows;
    }
    INFO("stage " << stage);
    CHECK(collectives > 3);
    CHECK(bars == collectives);
    CHECK(arrows == 2 * collectives);
  }
}

TEST_CASE("a rank or step that a run does not have is refused, with those that it has",
          "[diagram]") {
  LoggedRun logged = run_of_stage(1);
  const WrittenRun written(logged);
  CHECK(contains(why_not(written, {.rank = 3}), "has ranks 0 to 2, and no rank 3"));
  CHECK(contains(why_not(written, {.step = 3}), "has steps 1 to 2, and no step 3"));
  CHECK(contains(why_not(written, {.step = 0}), "has steps 1 to 2, and no step 0"));
  logged.logs[0].clear();
  CHECK(contains(why_not(WrittenRun(logged), {}), "has no whole step of rank 0 to draw"));
}

TEST_CASE("the last whole step of a log that is cut is drawn", "[diagram]") {
  LoggedRun logged = run_of_stage(2);
  logged.summary = nullptr;
  const std::size_t end = logged.find(1, {{"ev", "step"}, {"step", 2}});
  logged.logs[1].resize(end);
  logged.cut = "{\"t\":";
  const WrittenRun written(logged);
  CHECK(contains(diagram::sequence_dot({written.run}, {.rank = 1}), "<b>step 1</b>"));
}

TEST_CASE("times of a log that make no sense do no harm to a picture of a step", "[diagram]") {
  LoggedRun logged = run_of_stage(3);
  for (std::size_t i = 0; i < logged.logs[0].size(); ++i) {
    logged.change(0, i, [i](LoggedRun::Json& event) {
      event["t"] = i % 3 == 0 ? 1e300 : -1e300;
      if (event["ev"] == "comm") event["issued"] = event["waited"] = i % 2 == 0 ? 1e308 : -1e308;
      if (event["ev"] == "span") event["start"] = 1e308, event["end"] = -1e308;
    });
  }
  const WrittenRun written(logged);
  CHECK(fault_in_xml(diagram::render(diagram::sequence_dot({written.run}), "svg")) == "");
}

}  // namespace
}  // namespace zerolab::test
