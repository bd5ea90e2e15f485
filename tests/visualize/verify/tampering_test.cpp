// Good logs with one thing changed: verify finds it, as what it is and where it is.

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "lab/temporary_folder.hpp"
#include "tests/support/catch.hpp"
#include "tests/visualize/verify/tamperings.hpp"
#include "visualize/verify/replay.hpp"

namespace zerolab::test {
namespace {

using verify::Kind;
using Json = LoggedRun::Json;

std::set<std::string> names(const std::set<Kind>& kinds) {
  std::set<std::string> result;
  for (const Kind kind : kinds) result.emplace(verify::info(kind).name);
  return result;
}

verify::Verdict verdict_on(const LoggedRun& run) {
  const TemporaryFolder folder;
  run.write(folder.path());
  return verify::replay(log::read_run_folder(folder.path()));
}

void check_found(const LoggedRun& good, int stage, const std::vector<Tampering>& tamperings) {
  CHECK(verdict_on(good).violations.empty());
  for (const Tampering& tampering : tamperings) {
    if (std::count(tampering.stages.begin(), tampering.stages.end(), stage) == 0) continue;
    INFO("stage " << stage << ": " << tampering.what);
    LoggedRun run = good;
    const Expected expected = tampering.plant(run);
    const verify::Verdict verdict = verdict_on(run);
    std::set<Kind> found;
    for (const auto& [kind, first] : verdict.violations) {
      found.insert(kind);
      UNSCOPED_INFO(verify::info(kind).name << " " << first.file << ":" << first.line << " "
                                            << first.text);
    }
    std::set<Kind> wanted(expected.others.begin(), expected.others.end());
    wanted.insert(tampering.kind);
    CHECK(names(found) == names(wanted));
    const auto first = verdict.violations.find(tampering.kind);
    if (first == verdict.violations.end()) continue;
    CHECK(first->second.line == expected.line + 1);
    if (first->second.line > 0) {
      CHECK(first->second.file == fmt::format("rank{}.events.jsonl", expected.rank));
    }
    CHECK(first->second.text.find(expected.says) != std::string::npos);
  }
}

TEST_CASE("every tampering with a good log is found as what it is and where it is", "[verify]") {
  for (const int stage : kAllStages) {
    check_found(run_to_tamper_with(stage), stage, all_tamperings());
  }
}

TEST_CASE("every tampering with the log of a run that was resumed and saves is found", "[verify]") {
  for (const int stage : kAllStages) {
    check_found(resumed_run_to_tamper_with(stage), stage, tamperings_with_checkpoints());
  }
}

TEST_CASE("every kind of violation has a tampering", "[verify]") {
  std::set<Kind> planted, known;
  for (const auto& tamperings : {all_tamperings(), tamperings_with_checkpoints()}) {
    for (const Tampering& tampering : tamperings) planted.insert(tampering.kind);
  }
  for (const verify::KindInfo& info : verify::all_kinds()) known.insert(info.kind);
  CHECK(names(planted) == names(known));
}

TEST_CASE("more violations of a kind are counted", "[verify]") {
  LoggedRun run = run_to_tamper_with(3);
  for (std::size_t i = 0; i < 5; ++i) {
    run.change(1, i, [](Json& event) { event["rank"] = 0; });
  }
  const verify::Verdict verdict = verdict_on(run);
  REQUIRE(verdict.violations.count(Kind::other_rank) == 1);
  CHECK(verdict.violations.at(Kind::other_rank).line == 1);
  CHECK(verdict.violations.at(Kind::other_rank).more == 4);
}

}  // namespace
}  // namespace zerolab::test
