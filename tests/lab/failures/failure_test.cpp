#include "lab/failures/failure.hpp"

#include <fmt/format.h>

#include <set>

#include "lab/failures/mistakes/mistake.hpp"
#include "lab/temporary_folder.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/documents.hpp"
#include "tests/support/thrown.hpp"

namespace zerolab::test {
namespace {

const std::filesystem::path kPages = repository() / "lab/failures";

constexpr const char* kSections =
    "# A title\n\nAbout it.\n\n## Symptom\n\nIt shows. And more.\n\n## Cause\n\nThe cause.\n\n"
    "## Fix\n\nThe fix.\n\n";

std::string page(const std::string& runs) {
  return std::string(kSections) + "## Runs\n\n```json\n" + runs + "\n```\n";
}

constexpr const char* kRuns =
    R"({"stage": "3", "broken": {"run": "train --stage 3", "exit": 4, "code": "ZL401"},
        "fixed": {"run": "train", "config": {"a": 1}},
        "evidence": [{"events": {"ev": "param"}, "last": 2, "of": "fixed", "rank": 1}]})";

Failure read(const std::string& text) {
  const TemporaryFolder folder;
  return read_failure(folder.write("state/my-failure.md", text));
}

TEST_CASE("a page of the clinic is read as it says", "[lab][failures]") {
  const Failure failure = read(page(kRuns));
  CHECK(failure.id == "my-failure");
  CHECK(failure.kind == "state");
  CHECK(failure.title == "A title");
  CHECK(failure.about == "About it.");
  CHECK(failure.symptom == "It shows. And more.");
  CHECK(first_sentence(failure.symptom) == "It shows.");
  CHECK(failure.stage == "3");
  CHECK(failure.broken.exit_status == 4);
  CHECK(failure.broken.code == "ZL401");
  CHECK_FALSE(failure.silent());
  CHECK(failure.fixed.exit_status == 0);
  CHECK(failure.fixed.config == "{\n  \"a\": 1\n}\n");
  REQUIRE(failure.evidence.size() == 1);
  CHECK(failure.evidence[0].of_the_fixed);
  CHECK(failure.evidence[0].rank == 1);
  CHECK(failure.evidence[0].count == 2);
}

TEST_CASE("a page of the clinic that cannot be followed is refused with what it lacks",
          "[lab][failures]") {
  struct Bad {
    std::string text, why;
  };
  const std::string good = page(kRuns);
  const auto without = [&](const std::string& part) {
    std::string text = good;
    text.replace(text.find(part), part.size(), "");
    return text;
  };
  for (const Bad& bad : {
           Bad{"", "no heading"},
           Bad{without("# A title"), "no heading"},
           Bad{without("## Cause\n\nThe cause."), "no section 'Cause'"},
           Bad{without("The fix."), "no section 'Fix'"},
           Bad{without("```json"), "no block of JSON"},
           Bad{without("\"stage\": \"3\","), "lacks \"stage\""},
           Bad{without(", \"exit\": 4, \"code\": \"ZL401\""), "no \"checks\""},
           Bad{page(R"({"stage": 3, "broken": {}, "fixed": {}})"), "\"stage\" of the wrong type"},
           Bad{page(R"({"stage": "3", "broken": 5, "fixed": {}})"),
               "something else than an object"},
           Bad{page(R"({"stage": "3", "broken": {"rnu": "x"}, "fixed": {}})"), "did you mean run?"},
           Bad{page(R"({"stage": "3", "broken": {"run": "a", "exit": 1}, "fixed": {"run": "b"},
                        "evidence": [{"of": "both"}]})"),
               "neither broken nor fixed"},
           Bad{page(R"([1, 2])"), "something else than an object"},
           Bad{page(R"({"stage": "3", "broken": {"run": "a", "exit": 1},
                        "fixed": {"run": "b", "exit": 1}})"),
               "a fixed run that fails"},
       }) {
    INFO(bad.why);
    const auto error = thrown_by([&] { read(bad.text); });
    REQUIRE(error);
    CHECK(error->code() == Code::clinic_page);
    CHECK(contains(error->what(), "my-failure.md"));
    CHECK(contains(error->what(), bad.why));
  }
  const auto missing = thrown_by([] { read_failure("no/such/page.md"); });
  REQUIRE(missing);
  CHECK(contains(missing->what(), "cannot be read"));
  const auto empty = thrown_by([] { read_failures(TemporaryFolder().path()); });
  REQUIRE(empty);
  CHECK(empty->code() == Code::clinic_page);
}

TEST_CASE("the clinic has at least 45 failures, each with a sentence a table has room for",
          "[lab][failures][docs]") {
  const std::vector<Failure> failures = read_failures(kPages);
  CHECK(failures.size() >= 45);
  std::set<std::string> ids;
  for (const Failure& failure : failures) {
    INFO(failure.id);
    CHECK(ids.insert(failure.id).second);
    for (const std::string& text : {failure.symptom, failure.cause, failure.fix}) {
      const std::string sentence = first_sentence(text);
      INFO(sentence);
      CHECK(sentence.back() == '.');
      CHECK(sentence.size() <= 160);
    }
  }
  for (const char* needed : {"stage-0-out-of-memory", "unregistered-head"}) {
    CHECK(ids.count(needed) == 1);
  }
}

TEST_CASE("every deliberate mistake is made on some page, and every page knows those it makes",
          "[lab][failures]") {
  std::string lines;
  for (const Failure& failure : read_failures(kPages)) {
    for (const ClinicRun& run :
         {failure.measured.value_or(ClinicRun{}), failure.broken, failure.fixed}) {
      lines += run.line + " \n";
    }
  }
  std::set<std::string> names;
  for (const Mistake& mistake : mistakes()) {
    INFO(mistake.name);
    CHECK(names.insert(mistake.name).second);
    CHECK(static_cast<bool>(mistake.make) != static_cast<bool>(mistake.save));
    CHECK(contains(lines, fmt::format("--break {} ", mistake.name)));
    CHECK(contains(lines, fmt::format("--mend {} ", mistake.name)) ==
          static_cast<bool>(mistake.mend));
  }
}

TEST_CASE("a mistake that there is not is refused with the nearest one", "[lab][failures]") {
  const auto unknown = thrown_by([] { find_mistake("unregisterd-head", "--break"); });
  REQUIRE(unknown);
  CHECK(unknown->code() == Code::usage);
  CHECK(contains(unknown->what(), "did you mean unregistered-head?"));
  const auto nothing = thrown_by([] { find_mistake("never-released", "--mend"); });
  REQUIRE(nothing);
  CHECK(contains(nothing->what(), "nothing is left of it"));
}

}  // namespace
}  // namespace zerolab::test
