// What verify does with folders that are no whole run.
#include "visualize/verify/replay.hpp"

#include <fmt/format.h>

#include <random>

#include "lab/temporary_folder.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/logged_run.hpp"
#include "tests/support/thrown.hpp"
#include "tests/support/trainings.hpp"

namespace zerolab::test {
namespace {

using Json = LoggedRun::Json;

LoggedRun good_run() {
  Training training = training_of(tiny_transformer(), 3);
  training.steps = 2;
  training.settings.zero.prefetch_bucket_size = 500;
  return logged_run(3, training);
}

verify::Verdict verdict_on(const LoggedRun& run, const std::string& error_json = "") {
  const TemporaryFolder folder;
  run.write(folder.path());
  if (!error_json.empty()) folder.write("error.json", error_json);
  return verify::replay(log::read_run_folder(folder.path()));
}

std::string refused(const LoggedRun& run) {
  try {
    verdict_on(run);
    return "";
  } catch (const log::Unreadable& unreadable) {
    return unreadable.what();
  }
}

TEST_CASE("a log that is cut anywhere is judged as far as it goes, and that is said", "[verify]") {
  const LoggedRun good = good_run();
  for (const std::size_t share : {2U, 3U, 5U, 7U, 11U, 13U}) {
    LoggedRun run = good;
    run.summary = nullptr;
    // Each rank is killed somewhere else.
    for (std::size_t rank = 0; rank < 3; ++rank) {
      run.logs[rank].resize(good.logs[rank].size() * (share + rank) / (share + 5));
    }
    run.cut = good.logs[1][run.logs[1].size()].substr(0, share);
    const verify::Verdict verdict = verdict_on(run);
    for (const auto& [kind, first] : verdict.violations) {
      UNSCOPED_INFO(verify::info(kind).name << " " << first.file << ":" << first.line << " "
                                            << first.text);
    }
    CHECK(verdict.violations.empty());
    REQUIRE(verdict.remarks.size() == 2);
    CHECK(verdict.remarks[0] == "the run did not end: there is no summary.json");
    CHECK(verdict.remarks[1] ==
          fmt::format("rank1.events.jsonl ends in the middle of line {}", run.logs[1].size() + 1));
  }
}

TEST_CASE("what is wrong in a run that did not end is found all the same", "[verify]") {
  LoggedRun run = good_run();
  run.summary = nullptr;
  const std::size_t line = run.find(2, {{"ev", "comm"}, {"op", "all_gather"}});
  run.change(2, line, [](Json& event) { event["elements"] = 4; });
  run.logs[1].resize(run.logs[1].size() / 2);
  const verify::Verdict verdict = verdict_on(run);
  REQUIRE(verdict.violations.count(verify::Kind::collective_order) == 1);
  CHECK(verdict.violations.at(verify::Kind::collective_order).line == line + 1);
}

TEST_CASE("a run that failed says with which error", "[verify]") {
  LoggedRun run = good_run();
  run.summary = nullptr;
  const verify::Verdict verdict =
      verdict_on(run, R"({"code": "ZL401", "rank": 2, "message": "m"})");
  CHECK(verdict.violations.empty());
  CHECK(verdict.remarks == std::vector<std::string>{"the run ended with ZL401 on rank 2"});
}

TEST_CASE("a folder without events is refused, with what there is instead", "[verify]") {
  LoggedRun steps = good_run();
  for (auto& log : steps.logs) {
    std::erase_if(log, [](const std::string& line) { return !contains(line, "\"ev\":\"step\""); });
  }
  CHECK(contains(refused(steps), "has events of steps only, so there is nothing to replay"));
  LoggedRun none = good_run();
  for (auto& log : none.logs) log.clear();
  CHECK(contains(refused(none), "has no event files"));
  LoggedRun nonsense = good_run();
  for (auto& log : nonsense.logs) log = {"nonsense"};
  CHECK(contains(refused(nonsense), "has no events"));
}

TEST_CASE("modules in run.json that name what is not there are refused", "[verify]") {
  LoggedRun run = good_run();
  run.run["modules"][0]["children"].push_back("ghost");
  CHECK(contains(refused(run), "run.json has a module 'transformer' that names 'ghost'"));
  run = good_run();
  run.run["modules"][1]["external"].push_back("ghost.weight");
  CHECK(contains(refused(run), "that names 'ghost.weight', which it does not list"));
}

TEST_CASE("a leaf that holds itself is read to its end", "[verify]") {
  LoggedRun run = good_run();
  run.run["modules"][0]["leaf"] = true;
  run.run["modules"][1]["children"].push_back("transformer");
  // As a leaf the model reads everything, and here it is not all whole while it runs.
  CHECK(verdict_on(run).violations.count(verify::Kind::use_while_not_available) == 1);
}

TEST_CASE("numbers at the end of their range make no sum overflow into agreement", "[verify]") {
  LoggedRun run = good_run();
  const log::Count most = log::Count{1} << 53;
  for (std::size_t line = 0; line < run.logs[0].size(); ++line) {
    if (!contains(run.logs[0][line], "\"ev\":\"alloc\"")) continue;
    run.change(0, line, [&](Json& event) { event["bytes"] = event["live"] = most; });
  }
  const verify::Verdict verdict = verdict_on(run);
  CHECK(verdict.violations.count(verify::Kind::live_bytes) == 1);
  CHECK(verdict.violations.count(verify::Kind::memory_summary) == 1);
}

// Whatever is in the files: a verdict, or a refusal.
TEST_CASE("a thousand logs with something changed at random are judged or refused", "[verify]") {
  Training training = training_of_odd_sizes(3);
  training.steps = 1;
  const LoggedRun good = logged_run(2, training);
  std::mt19937_64 random(5);
  const auto below = [&random](std::size_t n) { return static_cast<std::size_t>(random() % n); };
  int found = 0;
  for (int i = 0; i < 1000; ++i) {
    LoggedRun run = good;
    std::vector<std::string>& log = run.logs[below(2)];
    std::string& line = log[below(log.size())];
    switch (below(6)) {
      case 0:
        line[below(line.size())] = static_cast<char>(below(256));
        break;
      case 1:
        line.resize(below(line.size()));
        break;
      case 2:
        std::swap(line, log[below(log.size())]);
        break;
      case 3:
        line = log[below(log.size())];
        break;
      case 4:
        log.erase(log.begin() + static_cast<std::ptrdiff_t>(below(log.size())));
        break;
      default: {
        const std::size_t digit = line.find_first_of("0123456789", below(line.size()));
        if (digit != std::string::npos) line.replace(digit, 1, "999999999");
      }
    }
    try {
      found += verdict_on(run).violations.empty() ? 0 : 1;
    } catch (const log::Unreadable&) {
      ++found;
    }
  }
  // The rest are changes to where somebody's name for people is, of a digit of a time, or none.
  CHECK(found > 850);
}

TEST_CASE("names of ten thousand bytes are cut in messages", "[verify]") {
  LoggedRun run = good_run();
  const std::size_t line = run.find(0, {{"ev", "span"}});
  run.change(0, line, [](Json& event) { event["module"] = std::string(10'000, 'n'); });
  const verify::Verdict verdict = verdict_on(run);
  REQUIRE(verdict.violations.count(verify::Kind::unknown_name) == 1);
  CHECK(verdict.violations.at(verify::Kind::unknown_name).text.size() < 200);
}

}  // namespace
}  // namespace zerolab::test
