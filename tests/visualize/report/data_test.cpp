// What a report shows of a run, as data.
#include "visualize/report/data.hpp"

#include "lab/temporary_folder.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/reported.hpp"
#include "tests/support/trainings.hpp"
#include "visualize/log/words.hpp"

namespace zerolab::test {
namespace {

using Json = LoggedRun::Json;

std::string category(std::size_t number) {
  return std::string(log::name_of(static_cast<log::Category>(number)));
}

/// Live bytes by category after the changes of a view up to the highest total.
std::vector<std::int64_t> highest(const Json& view) {
  std::vector<std::int64_t> live = view["live"];
  std::vector<std::int64_t> best = live;
  std::int64_t most = 0, total = 0;
  for (const std::int64_t bytes : live) total += bytes;
  for (std::size_t i = 0; i < view["memory"]["t"].size(); ++i) {
    const std::int64_t bytes = view["memory"]["bytes"][i];
    live[view["memory"]["category"][i].get<std::size_t>()] += bytes;
    total += bytes;
    if (total > most) most = total, best = live;
  }
  return best;
}

}  // namespace

TEST_CASE("what a report says of losses, memory and traffic is what summary.json says",
          "[report]") {
  for (int stage = 0; stage <= 3; ++stage) {
    const LoggedRun logged = reported_run(stage);
    const Json page = page_data_of(logged);
    const Json& run = page["runs"][0];
    CAPTURE(stage);
    CHECK(run["stage"] == stage);
    CHECK(run["comm"] == logged.summary["comm"]);
    for (const char* same : {"comm_seconds", "exposed_comm_seconds", "overlap_fraction",
                             "tokens_per_second", "prefetch"}) {
      CHECK(run[same] == logged.summary[same]);
    }
    REQUIRE(run["steps"]["list"].size() == 2);
    for (std::size_t i = 0; i < 2; ++i) {
      for (const char* same : {"step", "loss", "grad_norm", "skipped", "lr", "scale", "seconds"}) {
        CHECK(run["steps"]["list"][i][same] == logged.summary["steps"][i][same]);
      }
    }
    REQUIRE(run["ranks"].size() == 3);
    for (std::size_t rank = 0; rank < 3; ++rank) {
      const Json& memory = logged.summary["memory"][rank]["device"];
      for (std::size_t c = 0; c < run["ranks"][rank]["peak"].size(); ++c) {
        CHECK(run["ranks"][rank]["peak"][c] == memory["peak"][category(c)]);
        CHECK(run["ranks"][rank]["steady"][c] == memory["steady"][category(c)]);
      }
    }
  }
}

TEST_CASE("without a summary a report has the same figures from the events", "[report]") {
  LoggedRun logged = reported_run(2);
  const Json with = page_data_of(logged)["runs"][0];
  logged.summary = nullptr;
  const Json without = page_data_of(logged)["runs"][0];
  CHECK(without["comm"].is_null());
  CHECK_FALSE(without["ended"]);
  for (std::size_t rank = 0; rank < 3; ++rank) {
    CHECK(without["ranks"][rank]["peak"] == with["ranks"][rank]["peak"]);
    CHECK(without["ranks"][rank]["steady"] == with["ranks"][rank]["steady"]);
  }
  for (std::size_t i = 0; i < 2; ++i) {
    CHECK(without["steps"]["list"][i]["loss"] == with["steps"]["list"][i]["loss"]);
  }
}

TEST_CASE("a step in full comes to the peak of the run, on every rank", "[report]") {
  const LoggedRun logged = reported_run(3);
  const Json run = page_data_of(logged)["runs"][0];
  REQUIRE(run["views"].size() == 2);  // both steps
  for (std::size_t rank = 0; rank < 3; ++rank) {
    std::int64_t most = 0;
    for (const Json& view : run["views"]) {
      std::int64_t total = 0;
      for (const std::int64_t bytes : highest(view["ranks"][rank])) total += bytes;
      most = std::max(most, total);
    }
    CHECK(most == logged.summary["memory"][rank]["device"]["peak"]["total"]);
  }
  CHECK(run["views"][1]["ranks"][0]["transitions"].size() > 10);
  CHECK(run["views"][1]["ranks"][0]["spans"].size() > 10);
  CHECK(run["diagram"].get<std::string>().find("NOT_AVAILABLE") != std::string::npos);
}

TEST_CASE("times in a report are those of the log, in order and within the step", "[report]") {
  const Json run = page_data_of(reported_run(3))["runs"][0];
  for (const Json& view : run["views"]) {
    for (const Json& rank : view["ranks"]) {
      const std::int64_t length = rank["length"];
      const std::vector<std::int64_t> times = rank["memory"]["t"];
      CHECK(std::is_sorted(times.begin(), times.end()));
      CHECK(times.front() >= 0);
      CHECK(times.back() <= length);
      for (const Json& transfer : rank["transfers"]) {
        CHECK(transfer[3] <= transfer[4]);
        CHECK(transfer[4] <= transfer[5]);
        CHECK(transfer[6] <= transfer[7]);
        CHECK(transfer[7] <= length);
      }
      for (const Json& span : rank["spans"]) CHECK(span[2] <= span[3]);
    }
  }
}

TEST_CASE("several run folders stand in one report, and a comparison says whether bits are equal",
          "[report]") {
  const TemporaryFolder folder;
  for (const int stage : {0, 1}) {
    const auto path = folder.path() / "compared" / ("stage" + std::to_string(stage));
    std::filesystem::create_directories(path);
    reported_run(stage).write(path);
  }
  folder.write("compared/compare.json", R"({"bitwise_equal": false, "max_ulp": 3})");
  std::filesystem::create_directories(folder.path() / "other");
  reported_run(3).write(folder.path() / "other");
  const Json page = report::page_data({folder.path() / "compared", folder.path() / "other"});
  REQUIRE(page["runs"].size() == 3);
  CHECK(page["runs"][0]["stage"] == 0);
  CHECK(page["runs"][1]["stage"] == 1);
  CHECK(page["runs"][2]["stage"] == 3);
  REQUIRE(page["comparisons"].size() == 1);
  CHECK(page["comparisons"][0]["max_ulp"] == 3);
  CHECK(page["comparisons"][0]["bitwise_equal"] == false);
}

TEST_CASE("a log that is cut in a line gives a report that says so", "[report]") {
  LoggedRun logged = reported_run(3);
  logged.summary = nullptr;
  logged.logs[1].resize(logged.logs[1].size() / 2);
  logged.cut = R"({"t": 12.5, "ran)";
  const Json page = page_data_of(logged);
  const std::vector<std::string> missing = remarks_of(page, "missing");
  REQUIRE(missing.size() == 2);
  CHECK(missing[0].find("the run did not end") != std::string::npos);
  CHECK(missing[1].find("rank1.events.jsonl ends in the middle of line " +
                        std::to_string(logged.logs[1].size() + 1)) == 0);
  const Json& view = page["runs"][0]["views"].back()["ranks"];
  CHECK(view[0]["ended"] == true);
}

TEST_CASE("lines that cannot be read are left out of a report, and counted", "[report]") {
  LoggedRun logged = reported_run(1);
  logged.logs[2][7] = "{}";
  logged.logs[2][9] = "no JSON";
  const std::vector<std::string> missing = remarks_of(page_data_of(logged), "missing");
  REQUIRE(missing.size() == 1);
  CHECK(missing[0] ==
        "rank2.events.jsonl: 2 line(s) cannot be read and are left out; the first, line 8 has no "
        "'t'.");
}

TEST_CASE("a report says what a log of steps only, or none, leaves out", "[report]") {
  LoggedRun logged = reported_run(3);
  for (auto& lines : logged.logs) {
    std::erase_if(lines, [](const std::string& line) { return Json::parse(line)["ev"] != "step"; });
  }
  Json page = page_data_of(logged);
  REQUIRE(remarks_of(page, "missing").size() == 1);
  CHECK(remarks_of(page, "missing")[0].find("--log-level steps") != std::string::npos);
  CHECK(page["runs"][0]["views"].empty());
  CHECK(page["runs"][0]["diagram"].is_null());
  CHECK(page["runs"][0]["ranks"][0]["peak"].is_array());  // summary.json has it

  for (auto& lines : logged.logs) lines.clear();
  page = page_data_of(logged);
  REQUIRE(remarks_of(page, "missing").size() == 1);
  CHECK(remarks_of(page, "missing")[0].find("--log-level off") != std::string::npos);
}

}  // namespace zerolab::test
