#include "lab/failures/fail.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>

#include "lab/failures/clinic_text.hpp"
#include "lab/installed.hpp"
#include "lab/options.hpp"
#include "lab/terminal.hpp"
#include "stages/base/nearest.hpp"

namespace zerolab {
namespace {

constexpr int kLeastRanks = 2;
constexpr std::size_t kMostColumns = 180;  // of the table

struct Wanted {
  std::vector<std::string> names;
  bool list = false, all = false, json = false, plain = false;
  int ranks = kDefaultRanks;
  std::string out = "runs/fail";
};

[[noreturn]] void refuse(const std::string& what, const std::string& way_out) {
  throw Error(Code::usage, what, way_out);
}

/// A failure of the catalogue by its id, or a page of one's own by its file name.
Failure find(const std::vector<Failure>& catalogue, const std::string& name) {
  if (name.ends_with(".md")) return read_failure(name);
  const auto found = std::find_if(catalogue.begin(), catalogue.end(),
                                  [&](const Failure& each) { return each.id == name; });
  if (found != catalogue.end()) return *found;
  std::vector<std::string> ids;
  ids.reserve(catalogue.size());
  for (const Failure& each : catalogue) ids.push_back(each.id);
  refuse(fmt::format("fail {}: there is no such failure{}", name, did_you_mean(name, ids)),
         "zerolab fail --list tells which there are; a page of your own ends in .md");
}

int run(const Wanted& wanted) {
  if (wanted.ranks < kLeastRanks) {
    refuse(fmt::format("fail -n {}: one rank alone has nothing to agree about", wanted.ranks),
           "two or more, up to 1024");
  }
  if (wanted.list + wanted.all + !wanted.names.empty() != 1) {
    refuse("fail needs to know what to try",
           "one of: the id of a failure, or several; --all; or --list to see what there is");
  }
  const std::vector<Failure> catalogue = read_failures(installed("share/zerolab/failures"));
  const Style style = choose_style(wanted.plain, output_is_terminal());
  const std::size_t columns = terminal_columns(kMostColumns);
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  if (wanted.list) {
    for (const Failure& failure : catalogue) json.push_back(to_json(failure));
    std::cout << (wanted.json ? json.dump(2) + '\n' : list_text(catalogue, style, columns));
    return 0;
  }

  std::vector<Failure> chosen = catalogue;
  if (!wanted.all) {
    chosen.clear();
    for (const std::string& name : wanted.names) chosen.push_back(find(catalogue, name));
  }
  std::vector<std::string> others;
  for (const Failure& failure : chosen) {
    const Examination examination = examine(failure, wanted.ranks, this_program(), wanted.out);
    if (!examination.as_documented()) others.push_back(failure.id);
    if (wanted.json) {
      json.push_back(to_json(examination));
    } else {
      std::cout << (wanted.all ? examination_line(examination, style)
                               : examination_text(examination, style, columns))
                << std::flush;
    }
  }
  if (wanted.json) std::cout << json.dump(2) << '\n' << std::flush;
  if (others.empty()) return 0;
  const Error error(
      Code::clinic, fmt::format("not as documented: {}", fmt::join(others, ", ")),
      fmt::format("what the runs left is in {}; if their pages are right, zerolab is wrong: "
                  "report it",
                  wanted.out));
  if (wanted.json) return error.exit_status();  // all of it is in what was printed
  throw Error(error);
}

}  // namespace

Subcommand fail_subcommand() {
  const auto declare = [](CLI::App& app) -> std::function<int()> {
    const auto wanted = std::make_shared<Wanted>();
    app.add_option("FAILURE", wanted->names, "What to try: ids of --list, or pages of your own");
    app.add_flag("--list", wanted->list, "Print all failures: id, stage, symptom, cause, fix");
    app.add_flag("--all", wanted->all, "Try all of them, a line each");
    app.add_option("-n,--ranks", wanted->ranks, "Ranks of the runs, as threads")
        ->type_name("N")
        ->capture_default_str();
    app.add_option("--out", wanted->out, "Where the runs leave their folders")
        ->type_name("FOLDER")
        ->capture_default_str();
    app.add_flag("--json", wanted->json, "Print the result as JSON, and nothing else");
    app.add_flag("--plain", wanted->plain, "Print in ASCII");
    return [wanted] { return run(*wanted); };
  };
  return {"fail", "Meet a documented failure: symptom, cause, fix", declare};
}

}  // namespace zerolab
