// The failure clinic as one runs it: every failure fails as its page says, and its fix works.
#include <fmt/format.h>

#include <set>

#include "tests/cli/command.hpp"
#include "tests/support/catch.hpp"

using namespace zerolab::test;

namespace {

void check_as_documented(const std::string& what, int ranks) {
  const Scratch scratch;
  const Outcome outcome =
      run_zerolab(fmt::format("fail {} -n {} --out {}", what, ranks, scratch.arg("fail")));
  INFO(outcome.all());
  CHECK(outcome.status == 0);
  CHECK(outcome.err.empty());
}

TEST_CASE("ten failures fail as documented, and their fixes work", "[cli]") {
  check_as_documented(
      "unregistered-head released-in-flight own-branch stage-0-out-of-memory "
      "stage-1-out-of-memory stage-2-out-of-memory divided-twice overflow-on-one-rank "
      "rank-dies unknown-key",
      2);
}

TEST_CASE("all failures fail as documented at 2 ranks", "[cli][slow]") {
  check_as_documented("--all", 2);
}

TEST_CASE("all failures fail as documented at 4 ranks", "[cli][slow]") {
  check_as_documented("--all", 4);
}

TEST_CASE("fail shows the symptom, the cause from the log, the fix, and what was checked",
          "[cli]") {
  const Scratch scratch;
  const Outcome outcome = run_zerolab("fail unregistered-head -n 3 --out " + scratch.arg("fail"));
  INFO(outcome.all());
  CHECK(outcome.status == 0);
  for (const char* part :
       {"$ zerolab train --model gpt-nano --stage 3 --steps 2 --break unregistered-head -n 3",
        "ZL401: module 'head'", "exit status 4 (ZL401)",
        "token_embedding.weight  AVAILABLE -> NOT_AVAILABLE  release",
        "register_external_parameter(head, table)", "exit status 0", "as documented"}) {
    INFO(part);
    CHECK(outcome.count(part) > 0);
  }
}

TEST_CASE("fail --list --json is an array of objects with what a table needs", "[cli]") {
  const Outcome outcome = run_zerolab("fail --list --json");
  REQUIRE(outcome.status == 0);
  const nlohmann::json list = nlohmann::json::parse(outcome.out);
  REQUIRE(list.is_array());
  CHECK(list.size() >= 45);
  std::set<std::string> kinds;
  for (const nlohmann::json& each : list) {
    INFO(each.dump());
    for (const char* field : {"id", "stage", "kind", "symptom", "cause", "fix"}) {
      CHECK(each.at(field).get<std::string>() != "");
    }
    CHECK(each.at("silent").get<bool>() == (each.at("exit_status") == 0));
    CHECK(each.at("loud").get<bool>() != each.at("silent").get<bool>());
    kinds.insert(each.at("kind"));
  }
  CHECK(kinds == std::set<std::string>{"checkpoint", "communication", "configuration", "memory",
                                       "numerics", "state"});
  const Outcome table = run_zerolab("fail --list");
  CHECK(table.status == 0);
  CHECK(table.count("unregistered-head") > 0);
  CHECK(table.count("symptom") == 6);
}

TEST_CASE("a failure that is not as its page says ends with status 1 and what was found instead",
          "[cli]") {
  const Scratch scratch;
  const auto page = [&](const std::string& name, const std::string& runs) {
    scratch.write(
        "state/" + name,
        "# T\n\nAbout.\n\n## Symptom\n\nS.\n\n## Cause\n\nC.\n\n## Fix\n\nF.\n\n```json\n" + runs +
            "\n```\n");
    return fmt::format("fail {} -n 2 --out {}", scratch.arg("state/" + name), scratch.arg("fail"));
  };
  const std::string good = R"({"run": "train --model mlp-small --steps 1"})";
  struct Wrong {
    std::string name, runs, found;
  };
  for (const Wrong& wrong : {
           Wrong{"status.md", R"("broken": {"run": "train --stpes 1", "exit": 4})",
                 "the broken run ends with status 4  [status 2]"},
           Wrong{"code.md", R"("broken": {"run": "train --stpes 1", "exit": 2, "code": "ZL202"})",
                 "the broken run ends with ZL202  [ZL201]"},
           Wrong{"says.md", R"("broken": {"run": "train --stpes 1", "exit": 2, "says": ["moon"]})",
                 "the broken run says: moon"},
           Wrong{"fix.md", R"("broken": {"run": "train --stpes 1", "exit": 2},
                              "fixed": {"run": "train --stpes 2"})",
                 "the fixed run ends with status 0  [status 2]"},
           Wrong{"check.md",
                 R"("broken": )" + good + R"(, "checks": ["broken.summary.steps[0].loss < 0"])",
                 "NOT broken.summary.steps[0].loss < 0  [broken.summary.steps[0].loss = 5."},
           Wrong{"name.md", R"("broken": )" + good + R"(, "checks": ["broken.sumary.x"])",
                 "there is no broken.sumary.x"},
           Wrong{"log.md",
                 R"("broken": )" + good +
                     R"(, "checks": ["1"], "evidence": [{"events": {"ev": "x"}}])",
                 "NOT the log shows the cause"},
       }) {
    INFO(wrong.name);
    const std::string fixed = wrong.name == "fix.md" ? "" : ", \"fixed\": " + good;
    const Outcome outcome =
        run_zerolab(page(wrong.name, R"({"stage": "0", )" + wrong.runs + fixed + "}"));
    INFO(outcome.all());
    CHECK(outcome.status == 1);
    CHECK(outcome.count(wrong.found) > 0);
    CHECK(outcome.count("ZL102: not as documented: " +
                        wrong.name.substr(0, wrong.name.find('.'))) == 1);
  }
}

TEST_CASE("fail prints what was run, found and judged as one JSON value, also when one is wrong",
          "[cli]") {
  const Scratch scratch;
  scratch.write("state/wrong.md",
                "# T\n\nAbout.\n\n## Symptom\n\nS.\n\n## Cause\n\nC.\n\n## Fix\n\nF.\n\n```json\n"
                R"({"stage": "0", "broken": {"run": "train --stpes 1", "exit": 4},)"
                R"( "fixed": {"run": "train --model mlp-small --steps 1"}})"
                "\n```\n");
  const Outcome outcome =
      run_zerolab(fmt::format("fail {} unknown-key -n 2 --json --out {}",
                              scratch.arg("state/wrong.md"), scratch.arg("a {place} $& so")));
  CHECK(outcome.status == 1);
  CHECK(outcome.err.empty());
  const nlohmann::json results = nlohmann::json::parse(outcome.out);
  REQUIRE(results.size() == 2);
  CHECK(results[0].at("as_documented") == false);
  CHECK(results[0].at("broken").at("exit_status") == 2);
  CHECK(results[1].at("as_documented") == true);
  CHECK(results[1].at("broken").at("code") == "ZL204");
  for (const nlohmann::json& verdict : results[1].at("verdicts"))
    CHECK(verdict.at("holds") == true);
}

TEST_CASE("what fail cannot do is refused before anything runs", "[cli]") {
  const Scratch scratch;
  struct Refused {
    std::string arguments, part;
  };
  scratch.write("fail/rank-dies/broken/thesis.tex", "precious");
  scratch.write("fail/no-such-tag/shared/thesis.tex", "precious");
  for (const Refused& refused :
       {Refused{"fail", "needs to know what to try"},
        Refused{"fail --all --list", "needs to know what to try"},
        Refused{"fail unregisterd-head", "did you mean unregistered-head?"},
        Refused{"fail no-such-page.md", "no-such-page.md cannot be read"},
        Refused{"fail rank-dies -n 1", "one rank alone"},
        Refused{"fail rank-dies -n 2 --out " + scratch.arg("fail"), "thesis.tex"},
        Refused{"fail no-such-tag -n 2 --out " + scratch.arg("fail"), "thesis.tex is of no"},
        Refused{"train --break shard-lost", "--break shard-lost without --save"},
        Refused{"train --break no-mistake", "is no deliberate mistake"},
        Refused{"train --mend early-release", "nothing is left of it"},
        Refused{"train --break own-seed --mend read-outside", "--break contradicts --mend"}}) {
    INFO(refused.arguments);
    const Outcome outcome = run_zerolab(refused.arguments);
    INFO(outcome.all());
    CHECK(outcome.status == 2);
    CHECK(outcome.count(refused.part) == 1);
  }
  CHECK(std::filesystem::exists(scratch.path("fail/no-such-tag/shared/thesis.tex")));
}

TEST_CASE("the runs of a failure share a folder, which is empty when it is met again", "[cli]") {
  const Scratch scratch;
  const std::string met =
      "fail no-such-tag other-batch-on-resume -n 3 --out " + scratch.arg("fail");
  CHECK(run_zerolab(met).status == 0);
  const std::filesystem::path shared = scratch.path("fail/no-such-tag/shared");
  CHECK(std::filesystem::exists(shared / "ck/global_step4/rank2.safetensors"));
  scratch.write("fail/no-such-tag/shared/ck/global_step9/manifest.json", "{}");  // an old one
  const Outcome again = run_zerolab(met);
  INFO(again.all());
  CHECK(again.status == 0);
  CHECK_FALSE(std::filesystem::exists(shared / "ck/global_step9"));
}

TEST_CASE("a deliberate mistake is said in heading, log and run.json", "[cli]") {
  const Scratch scratch;
  const Outcome outcome = run_zerolab(
      "train --model mlp-small --steps 1 -n 2 --break divided-twice --out " + scratch.arg("run"));
  REQUIRE(outcome.status == 0);
  CHECK(outcome.count("warning --break divided-twice") == 1);
  CHECK(read_json(scratch.path("run/run.json")).at("deliberate_mistake") == "divided-twice");
  int notes = 0;
  for (const nlohmann::json& event : read_json_lines(scratch.path("run/rank1.events.jsonl"))) {
    if (event.at("ev") == "note") ++notes;
  }
  CHECK(notes == 1);
}

}  // namespace
