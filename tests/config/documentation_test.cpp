#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <set>

#include "lab/run.hpp"
#include "stages/config/keys.hpp"
#include "stages/model/description.hpp"
#include "tests/config/support.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/documents.hpp"
#include "tests/support/thrown.hpp"

namespace zerolab {
namespace {

constexpr const char* kHas = "Settings that zerolab has";

/// The row of docs/configuration.md that begins with this name; without cells if there is none.
DocumentedRow row_about(std::string_view name) {
  for (const DocumentedRow& row : documented_rows("configuration.md")) {
    if (row.cells[0] == fmt::format("`{}`", name)) return row;
  }
  return {};
}

/// 3, 1e6
std::string number_text(double number) {
  std::string text = fmt::format("{:g}", number);
  for (const char drop : {'+', '0'}) {
    const std::size_t e = text.find('e');
    if (e != std::string::npos && text[e + 1] == drop) text.erase(e + 1, 1);
  }
  return text;
}

/// How the guide writes what a value may be.
std::string range_of(const Key& key) {
  const bool limited =
      key.most < (key.kind == Kind::whole ? 1e18 : std::numeric_limits<float>::max());
  switch (key.kind) {
    case Kind::boolean:
      return "`true`, `false`";
    case Kind::whole:
      return "whole, " + (limited ? number_text(key.least) + " to " + number_text(key.most)
                                  : "at least " + number_text(key.least));
    case Kind::number:
      return "number" + (limited ? fmt::format(" in [{}, {}]", key.least, key.most)
                                 : fmt::format(", at least {}", key.least));
    case Kind::pair:
      return fmt::format("two numbers in [{}, {})", key.least, key.most);
    case Kind::text:
      return key.path == "optimizer.type"   ? "`Adam`, `AdamW`, `SGD`"  // the next test tries them
             : key.path == "scheduler.type" ? "`WarmupLR`, `WarmupDecayLR`, `WarmupCosineLR`"
             : key.path == "checkpoint.tag_validation" ? "`Ignore`, `Warn`, `Fail`"
                                                       : "`log`, `linear`";
    case Kind::dtype:
      return "`fp32`, `bf16`, `fp16`";
    case Kind::names:
      return "strings";
    case Kind::block:
      break;
  }
  return "?";
}

bool same_value(const std::string& documented, const std::string& real) {
  char* end = nullptr;
  const double number = std::strtod(documented.c_str(), &end);
  if (end != documented.c_str() && *end == '\0') {
    return std::abs(number - std::strtod(real.c_str(), nullptr)) <= 1e-6 * std::abs(number);
  }
  return documented == real;
}

TEST_CASE("docs/configuration.md has every setting and spelling, and no other", "[config][docs]") {
  std::set<std::string> known;
  for (const Key& key : keys()) known.emplace(key.path);
  for (const ForeignKey& key : foreign_keys()) known.emplace(key.path);
  for (const Spelling& spelling : spellings()) known.emplace(spelling.old_path);

  std::set<std::string> documented;  // what a table row begins with: "| `name` |"
  for (const DocumentedRow& row : documented_rows("configuration.md")) {
    if (row.cells[0].rfind('`', 0) != 0) continue;
    const std::string name = without_backticks(row.cells[0]);
    INFO(name);
    CHECK(documented.insert(name).second);
    CHECK(known.count(name) == 1);
  }
  for (const std::string& name : known) {
    INFO(name);
    CHECK(documented.count(name) == 1);
  }
}

TEST_CASE("docs/configuration.md says of every setting what its value may be", "[config][docs]") {
  for (const Key& key : keys()) {
    const DocumentedRow row = row_about(key.path);
    INFO(key.path);
    REQUIRE(row.cells.size() == 5);
    CHECK(row.heading == kHas);
    CHECK(row.cells[1] == range_of(key));
  }
  for (const std::string& type : in_backticks(row_about("optimizer.type").cells[1])) {
    INFO(type);
    CHECK_FALSE(thrown_by(
        [&] { resolve(config(fmt::format(R"({{"optimizer": {{"type": "{}"}}}})", type))); }));
  }
  for (const std::string& word : in_backticks(row_about("checkpoint.tag_validation").cells[1])) {
    const Effective effective =
        resolve(config(fmt::format(R"({{"checkpoint": {{"tag_validation": "{}"}}}})", word)));
    CHECK(row_of(effective, "checkpoint.tag_validation").value == word);
  }
  for (const std::string& type : in_backticks(row_about("scheduler.type").cells[1])) {
    for (const std::string& warmup :
         in_backticks(row_about("scheduler.params.warmup_type").cells[1])) {
      INFO(type << ", " << warmup);
      const std::string total = type == "WarmupLR" ? "" : R"(, "total_num_steps": 2000)";
      const Effective effective = resolve(config(
          fmt::format(R"({{"scheduler": {{"type": "{}", "params": {{"warmup_type": "{}"{}}}}}}})",
                      type, warmup, total)));
      CHECK(row_of(effective, "scheduler.type").value == type);
      CHECK(row_of(effective, "scheduler.params.warmup_type").value == warmup);
    }
  }
}

TEST_CASE("docs/configuration.md says of every setting what it is if nobody says",
          "[config][docs]") {
  ResolveInput input;
  input.preset = preset_settings(describe_model("gpt-nano"));
  const Effective effective = resolve(input);
  for (const Key& key : keys()) {
    const std::string documented = without_backticks(row_about(key.path).cells[2]);
    const SettingRow row = row_of(effective, key.path);
    INFO(key.path << ": " << documented << ", really " << row.value);
    if (key.path == "zero_optimization.overlap_comm") {
      CHECK(documented == "true in stage 3 only");
    } else if (row.origin == Origin::default_value) {
      CHECK(same_value(documented, row.value));
    } else {
      CHECK(documented == (row.origin == Origin::preset ? "the preset's" : "derived"));
    }
  }
  for (const int stage : {0, 1, 2, 3}) {
    input.flags = {{"zero_optimization.stage", stage, "--stage"}};
    CHECK(resolve(input).settings.zero.overlap_comm == (stage == 3));
  }
}

TEST_CASE("docs/configuration.md says how a setting of DeepSpeed is taken, and why",
          "[config][docs]") {
  using Effect = ForeignKey::Effect;
  for (const ForeignKey& key : foreign_keys()) {
    const DocumentedRow row = row_about(key.path);
    INFO(key.path);
    switch (key.effect) {
      case Effect::quiet:
        CHECK(row.heading == "Taken, without effect");
        break;
      case Effect::only_speed:
        CHECK(row.heading == "Taken, with a warning: they would only affect speed");
        break;
      case Effect::must_be:
        CHECK(row.heading == "Taken only with the value that changes nothing");
        REQUIRE(row.cells.size() == 3);
        CHECK("[" + without_backticks(row.cells[1]) + "]" == key.accepted);
        break;
      case Effect::needs_block:
        CHECK(row.heading == "Parts of a block that is off");
        break;
    }
    if (key.effect != Effect::needs_block) CHECK(row.cells.back() == key.reason);
  }
}

TEST_CASE("docs/configuration.md says what every other spelling means", "[config][docs]") {
  for (const Spelling& spelling : spellings()) {
    const DocumentedRow row = row_about(spelling.old_path);
    INFO(spelling.old_path);
    CHECK(row.heading == "Other spellings");
    REQUIRE(row.cells.size() == 3);
    CHECK(without_backticks(row.cells[1]) == spelling.path);
    CHECK(row.cells[2] == (spelling.deprecated ? "deprecated, with a warning" : "a second name"));
  }
}

TEST_CASE("docs/configuration.md has every preset with its size", "[config][docs]") {
  std::vector<std::string> documented;
  for (const DocumentedRow& row : documented_rows("configuration.md")) {
    if (row.heading != "Model descriptions") continue;
    documented.push_back(row.cells[0]);
    const auto preset = find_preset(row.cells[0]);
    INFO(row.cells[0]);
    REQUIRE(preset);
    CHECK(row.cells[1] == name_of(preset->type));
    std::string count = row.cells[2];
    count.erase(std::remove(count.begin(), count.end(), ','), count.end());
    CHECK(count == std::to_string(parameter_count(*preset)));
  }
  CHECK(documented == preset_names());
}

}  // namespace
}  // namespace zerolab
