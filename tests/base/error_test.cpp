#include "stages/base/error.hpp"

#include <fmt/format.h>

#include <set>

#include "tests/support/catch.hpp"
#include "tests/support/documents.hpp"

namespace zerolab {
namespace {

TEST_CASE("docs/errors.md has one section for each code, in order, under its title",
          "[base][docs]") {
  std::vector<std::string> expected;
  for (const CodeInfo& info : all_codes()) {
    expected.push_back(fmt::format("## {}: {}", code_name(info.code), info.title));
  }
  std::vector<std::string> found;
  for (const std::string& line : lines_of_document("errors.md")) {
    if (line.rfind("## ", 0) == 0) found.push_back(line);
  }
  CHECK(found == expected);
}

TEST_CASE("every section of docs/errors.md has a message and a way out", "[base][docs]") {
  std::string section;
  bool message = true;
  bool way_out = true;
  const auto check_section = [&] {
    INFO(section);
    CHECK(message);
    CHECK(way_out);
  };
  for (const std::string& line : lines_of_document("errors.md")) {
    if (line.rfind("## ", 0) == 0) {
      check_section();
      section = line;
      message = way_out = false;
    }
    const std::string code = section.empty() ? "" : section.substr(3, section.find(':') - 3);
    message = message || (!code.empty() && line.rfind("    " + code + ": ", 0) == 0);
    way_out = way_out || line.rfind("**Way out**: ", 0) == 0;
  }
  check_section();
}

TEST_CASE("docs/errors.md has the exit status of every code", "[base][docs]") {
  std::set<std::string> documented;
  for (const DocumentedRow& row : documented_rows("errors.md")) documented.insert(row.cells[0]);
  for (const CodeInfo& info : all_codes()) {
    const int status = static_cast<int>(info.code) / 100;
    if (status > 128) continue;  // a signal: one row for all of them
    INFO(code_name(info.code));
    CHECK(documented.count(fmt::to_string(status)) == 1);
  }
}

TEST_CASE("the hundreds of a code are the exit status", "[base]") {
  for (const CodeInfo& info : all_codes()) {
    const Error error(info.code, "what", "way");
    CHECK(error.exit_status() == static_cast<int>(info.code) / 100);
    CHECK(std::string(error.what()) == code_name(info.code) + ": what\n  way out: way");
  }
}

}  // namespace
}  // namespace zerolab
