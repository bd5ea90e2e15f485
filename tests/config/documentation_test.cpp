#include <algorithm>
#include <set>

#include "stages/config/keys.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/documents.hpp"

namespace zerolab {
namespace {

TEST_CASE("docs/configuration.md has every setting and spelling, and no other", "[config][docs]") {
  std::set<std::string> known;
  for (const Key& key : keys()) known.emplace(key.path);
  for (const ForeignKey& key : foreign_keys()) known.emplace(key.path);
  for (const Spelling& spelling : spellings()) known.emplace(spelling.old_path);

  std::set<std::string> documented;  // what a table row begins with: "| `name` |"
  for (const std::string& line : lines_of_document("configuration.md")) {
    if (line.rfind("| `", 0) != 0) continue;
    const std::string name = line.substr(3, line.find('`', 3) - 3);
    INFO(name);
    CHECK(documented.insert(name).second);
    CHECK(known.count(name) == 1);
  }
  for (const std::string& name : known) {
    INFO(name);
    CHECK(documented.count(name) == 1);
  }
}

TEST_CASE("docs/configuration.md gives the reason that a warning gives", "[config][docs]") {
  const std::vector<std::string> lines = lines_of_document("configuration.md");
  for (const ForeignKey& key : foreign_keys()) {
    if (key.effect == ForeignKey::Effect::needs_block) continue;
    INFO(key.path);
    CHECK(std::any_of(lines.begin(), lines.end(), [&](const std::string& line) {
      return line.rfind("| `" + std::string(key.path) + "` |", 0) == 0 &&
             line.find(key.reason) != std::string::npos;
    }));
  }
}

}  // namespace
}  // namespace zerolab
