#include "lab/explain.hpp"

#include <sstream>

#include "lab/table.hpp"
#include "stages/base/error.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/documents.hpp"
#include "tests/support/error_samples.hpp"
#include "tests/support/thrown.hpp"

namespace zerolab {
namespace {

using Part = GuideBlock::Part;

constexpr std::string_view kPage = R"(# Errors

| exit status | meaning |
| --- | --- |
| 3 | out of memory |
| 128 + n | ended by signal n |

## ZL301: a pool went over its budget

The first [link with
a break](page.md#part), **bold** and `code [with](marks) ** in it`.

    ZL301: the example
      goes on

Text behind it.

**See it**:

    printf '{}' > file
    zerolab train

**Way out**: one
way.

And another.

## ZL14301: told to end

    ZL14301: told

**Way out**: none.
)";

TEST_CASE("a page of errors is taken apart into its sections and their parts", "[lab]") {
  const std::vector<ErrorSection> sections = error_sections(kPage);
  REQUIRE(sections.size() == 2);
  const ErrorSection& first = sections[0];
  CHECK(first.code == "ZL301");
  CHECK(first.title == "a pool went over its budget");
  CHECK(first.exit_status == 3);
  CHECK(first.exit_meaning == "out of memory");
  CHECK(first.part(Part::text) ==
        "The first link with a break, bold and `code [with](marks) ** in it`.\n\nText behind it.");
  CHECK(first.part(Part::example) == "ZL301: the example\n  goes on");
  CHECK(first.part(Part::see_it) == "printf '{}' > file\nzerolab train");
  CHECK(first.part(Part::way_out) == "one way.\n\nAnd another.");
  CHECK(sections[1].exit_status == 143);
  CHECK(sections[1].exit_meaning == "ended by signal n");
  CHECK(sections[1].part(Part::see_it).empty());
  CHECK(explanation_json(sections[1])["see_it"].is_null());
}

TEST_CASE("an explanation has all parts in the order of the page, as wide as it may be", "[lab]") {
  CHECK(explanation(error_sections(kPage)[0], 34) ==
        "ZL301: a pool went over its budget\n"
        "exit status 3: out of memory\n\n"
        "The first link with a break, bold\n"
        "and `code [with](marks) ** in it`.\n\n"
        "Example:\n\n"
        "    ZL301: the example\n"
        "      goes on\n\n"
        "Text behind it.\n\n"
        "See it:\n\n"
        "    printf '{}' > file\n"
        "    zerolab train\n\n"
        "Way out: one way.\n\n"
        "And another.\n");
}

TEST_CASE("what is explained is docs/errors.md, every code of it and nothing else", "[lab][docs]") {
  CHECK(std::string(error_page()) == document("errors.md"));
  const std::vector<ErrorSection> sections = error_sections(error_page());
  REQUIRE(sections.size() == all_codes().size());
  for (std::size_t i = 0; i < sections.size(); ++i) {
    const ErrorSection& section = sections[i];
    const CodeInfo& info = all_codes()[i];
    INFO(section.code);
    CHECK(section.code == code_name(info.code));
    CHECK(section.title == info.title);
    CHECK(section.exit_status == Error(info.code, "", "").exit_status());
    CHECK(reads_like(section.part(Part::example), sample_of(info.code)));
    const std::string see_it = section.part(Part::see_it);
    CHECK((see_it.empty() ? "" : see_it + '\n') == see_it_of(info.code));
    CHECK_FALSE(section.part(Part::way_out).empty());
    for (const Part part : {Part::text, Part::way_out}) {
      CHECK_FALSE(contains(section.part(part), "**"));
      CHECK_FALSE(contains(section.part(part), "]("));
    }
  }
}

TEST_CASE("sections of docs/errors.md have paragraphs and code only, as explain takes them",
          "[lab][docs]") {
  bool inside = false;
  for (const std::string& line : lines_of_document("errors.md")) {
    inside = inside || line.rfind("## ", 0) == 0;
    if (!inside || line.empty() || line.rfind("## ZL", 0) == 0) continue;
    INFO(line);
    CHECK(line.find_first_of("#|>") != 0);
    CHECK(line.rfind("- ", 0) != 0);
    CHECK(line.rfind("```", 0) != 0);
  }
}

TEST_CASE("no explanation is wider than 100 columns, but for what cannot be cut", "[lab][docs]") {
  for (const ErrorSection& section : error_sections(error_page())) {
    std::istringstream lines(explanation(section, 100));
    for (std::string line; std::getline(lines, line);) {
      if (line.rfind("    ", 0) == 0) continue;  // a message or a command
      INFO(line);
      CHECK(display_width(line) <= 100);
    }
  }
}

TEST_CASE("a code is found however it is written, an unknown one is told with its neighbours",
          "[lab]") {
  const std::vector<ErrorSection> sections = error_sections(error_page());
  for (const char* given : {"ZL301", "zl301", "301", "Zl301"}) {
    CHECK(find_section(sections, given).code == "ZL301");
  }
  CHECK(find_section(sections, "13001").code == "ZL13001");
  const auto message = [&](const std::string& given) {
    const auto error = thrown_by([&] { find_section(sections, given); });
    REQUIRE(error);
    CHECK(error->code() == Code::usage);
    CHECK(contains(error->way_out(), "zerolab explain"));
    return error->what_happened();
  };
  CHECK(message("309") == "explain: '309' is no error code; near it are ZL209, ZL301, ZL409");
  CHECK(message("banana") == "explain: 'banana' is no error code");
  CHECK(message("") == "explain: '' is no error code");
  CHECK(message("ZL") == "explain: 'ZL' is no error code");
  CHECK(message("301x") == "explain: '301x' is no error code; near it are ZL301");
  CHECK(message(std::string(1000, '3')).size() < 1100);
}

}  // namespace
}  // namespace zerolab
