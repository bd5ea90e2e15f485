#include <map>
#include <string>

#include "tests/support/catch.hpp"
#include "tests/support/documents.hpp"
#include "visualize/verify/kinds.hpp"

namespace zerolab {
namespace {

TEST_CASE("docs/verify.md explains every kind of violation, and no other", "[verify][docs]") {
  std::map<std::string, std::string> documented, known;
  for (const DocumentedRow& row : documented_rows("verify.md")) {
    REQUIRE(row.cells.size() == 3);
    CHECK_FALSE(row.cells[2].empty());
    CHECK(documented.emplace(without_backticks(row.cells[0]), row.cells[1]).second);
  }
  for (const verify::KindInfo& kind : verify::all_kinds()) {
    known.emplace(kind.name, name_of(kind.concern));
  }
  CHECK(documented == known);
}

}  // namespace
}  // namespace zerolab
