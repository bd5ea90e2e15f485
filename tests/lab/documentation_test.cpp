#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>
#include <set>
#include <sstream>

#include "lab/options.hpp"
#include "lab/subcommands.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/documents.hpp"
#include "tests/support/thrown.hpp"

namespace zerolab {
namespace {

using Names = std::set<std::string>;

/// The flags that the help of a subcommand has, by the title of their group.
std::map<std::string, Names> flags_in_help(const std::string& subcommand) {
  std::map<std::string, Names> flags;
  std::istringstream text(*parse_command_line({subcommand, "--help"}, false).text);
  std::string group;
  for (std::string line; std::getline(text, line) && line.rfind("Examples:", 0) != 0;) {
    if (!line.empty() && line[0] != ' ' && line.back() == ':') group = line;
    const std::size_t begin = line.find_first_not_of(' ');
    if (begin == 0 || begin == std::string::npos || line[begin] != '-') continue;
    std::istringstream words(line.substr(begin));  // "-n,--ranks N": names, commas between
    for (std::string word; words >> word && word[0] == '-';) {
      std::istringstream names(word);
      for (std::string name; std::getline(names, name, ',');) {
        flags[group].insert(name.substr(0, name.find('=')));
      }
      if (word.back() != ',') break;
    }
  }
  return flags;
}

Names all_of(const std::map<std::string, Names>& groups) {
  Names all;
  for (const auto& [group, names] : groups) all.insert(names.begin(), names.end());
  return all;
}

Names flags_in(const std::string& cell) {
  Names flags;
  for (const std::string& code : in_backticks(cell)) flags.insert(code.substr(0, code.find(' ')));
  return flags;
}

std::string joined(const std::vector<int>& numbers) {
  return fmt::format("{}", fmt::join(numbers, ","));
}

TEST_CASE("docs/command-line.md has every flag of train and compare, and no other", "[lab][docs]") {
  Names known = all_of(flags_in_help("train"));
  const Names of_compare = all_of(flags_in_help("compare"));
  known.insert(of_compare.begin(), of_compare.end());
  REQUIRE(known.size() > 20);

  Names documented;
  for (const DocumentedRow& row : documented_rows("command-line.md")) {
    REQUIRE(row.cells.size() == 3);
    const Names flags = flags_in(row.cells[0]);
    CHECK_FALSE(flags.empty());
    for (const std::string& flag : flags) {
      INFO(flag);
      CHECK(documented.insert(flag).second);
    }
  }
  CHECK(documented == known);
}

TEST_CASE("docs/command-line.md names every subcommand without ranks, and its flags",
          "[lab][docs]") {
  const std::string text = document("command-line.md");
  for (const Subcommand& subcommand : subcommands_without_ranks()) {
    INFO(subcommand.name);
    CHECK(contains(text, fmt::format("    zerolab {} ", subcommand.name)));
    for (const std::string& flag : all_of(flags_in_help(subcommand.name))) {
      INFO(flag);
      CHECK(
          (contains(text, fmt::format("`{}`", flag)) || contains(text, fmt::format("`{} ", flag))));
    }
  }
}

TEST_CASE("docs/command-line.md names every flag of generate and import", "[lab][docs]") {
  const std::string text = document("command-line.md");
  for (const std::string subcommand : {"generate", "import"}) {
    INFO(subcommand);
    CHECK(contains(text, fmt::format("    zerolab {} ", subcommand)));
    for (const std::string& flag : all_of(flags_in_help(subcommand))) {
      INFO(flag);
      CHECK(
          (contains(text, fmt::format("`{}`", flag)) || contains(text, fmt::format("`{} ", flag))));
    }
  }
}

TEST_CASE("docs/command-line.md has the values that flags have if they are not given",
          "[lab][docs]") {
  const RunOptions train = parse_command_line({"train"}, false).options;
  const RunOptions compare = parse_command_line({"compare"}, false).options;
  const std::map<std::string, std::string> real{
      {"--model", std::string(kDefaultModel)},
      {"--steps", fmt::to_string(train.steps)},
      {"--seed", fmt::to_string(kDefaultSeed)},
      {"--validate-every", fmt::to_string(train.validate_every)},
      {"--generate-every", fmt::to_string(train.generate_every)},
      {"--temperature", fmt::to_string(Sampling{}.temperature)},
      {"--top-k", fmt::to_string(Sampling{}.top_k)},
      {"--stages", joined(compare.stages)},
      {"--ranks", fmt::to_string(kDefaultRanks)},
      {"--threads", fmt::to_string(train.threads)},
      {"--out", train.out + ", " + compare.out},
  };
  std::size_t compared = 0;
  for (const DocumentedRow& row : documented_rows("command-line.md")) {
    for (const std::string& flag : flags_in(row.cells[0])) {
      const auto found = real.find(flag);
      if (found == real.end()) continue;
      INFO(flag);
      CHECK(without_backticks(row.cells[1]) == found->second);
      ++compared;
    }
  }
  CHECK(compared == real.size());
  CHECK(train.log_level == LogLevel::events);
  CHECK(train.device_memory == Ledger::kUnlimited);
}

TEST_CASE("docs/configuration.md names for every setting the flags that set it", "[lab][docs]") {
  Names documented;
  for (const DocumentedRow& row : documented_rows("configuration.md")) {
    if (row.heading != "Settings that zerolab has") continue;
    for (const std::string& flag : flags_in(row.cells.at(4))) {
      INFO(flag);
      documented.insert(flag);
      if (flag == "--stages") continue;  // of compare, which sets the stage run by run
      std::vector<std::string> arguments{"train", flag};
      if (row.cells[1] != "`true`, `false`") arguments.emplace_back("2");
      const RunOptions options = parse_command_line(arguments, false).options;
      REQUIRE(options.settings.size() == 1);
      CHECK(options.settings[0].key == without_backticks(row.cells[0]));
      CHECK(options.settings[0].source == flag);
    }
  }
  Names known;
  for (const char* subcommand : {"train", "compare"}) {
    for (const auto& [group, names] : flags_in_help(subcommand)) {
      if (group.rfind("Settings", 0) == 0) known.insert(names.begin(), names.end());
    }
  }
  known.erase("--config");
  known.erase("--deepspeed_config");
  CHECK(documented == known);
}

}  // namespace
}  // namespace zerolab
