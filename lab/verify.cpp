#include "lab/verify.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "lab/error_report.hpp"
#include "lab/generated_text.hpp"
#include "lab/table.hpp"
#include "lab/terminal.hpp"
#include "stages/base/error.hpp"
#include "visualize/verify/replay.hpp"

namespace zerolab {
namespace {

using verify::Kind;
using verify::Verdict;
using verify::Violation;
using Json = nlohmann::ordered_json;

struct Judged {
  std::string folder;
  Verdict verdict;
};

std::vector<Judged> judge(const std::filesystem::path& folder) {
  std::vector<Judged> result;
  for (const std::filesystem::path& path : log::runs_in(folder)) {
    log::RunFolder run = log::read_run_folder(path);
    // A comparison that failed says so above its stages; the last of them did not end.
    if (!run.summary && !run.failure && path != folder) run.failure = log::read_failure(folder);
    result.push_back({path.string(), verify::replay(run)});
  }
  return result;
}

std::string place_of(const Violation& violation) {
  return violation.line == 0 ? violation.file
                             : fmt::format("{}:{}", violation.file, violation.line);
}

// A row for each thing that is checked.
std::string table_of(const Verdict& verdict, Style style) {
  Table table{{{"check", Table::Align::left}, {"verdict", Table::Align::left}}, {}};
  for (const verify::KindInfo& kind : verify::all_kinds()) {
    const std::string concern(name_of(kind.concern));
    if (table.rows.empty() || table.rows.back()[0] != concern) {
      table.rows.push_back({concern, "ok"});
    }
    if (verdict.violations.count(kind.kind) == 0) continue;
    std::string& cell = table.rows.back()[1];
    cell = cell == "ok" ? std::string(kind.name) : fmt::format("{}, {}", cell, kind.name);
  }
  return draw_table(table, style);
}

std::string text_of(const Judged& judged, Style style) {
  const auto& [folder, verdict] = judged;
  std::string text = fmt::format("{}: {} rank(s), {} step(s), {} events replayed\n", folder,
                                 verdict.ranks, verdict.steps, verdict.events);
  for (const std::string& remark : verdict.remarks) text += fmt::format("note  {}\n", remark);
  text += "\n" + table_of(verdict, style);
  for (const auto& [kind, first] : verdict.violations) {
    text += fmt::format("\n {}  {}\n   {}\n", info(kind).name, place_of(first), first.text);
    if (first.more > 0) text += fmt::format("   and {} more of this kind\n", first.more);
  }
  return printable(text);
}

Json to_json(const std::vector<Judged>& all) {
  Json runs = Json::array();
  for (const auto& [folder, verdict] : all) {
    Json violations = Json::array();
    for (const auto& [kind, first] : verdict.violations) {
      violations.push_back({{"kind", info(kind).name},
                            {"check", name_of(info(kind).concern)},
                            {"file", first.file},
                            {"line", first.line == 0 ? Json(nullptr) : Json(first.line)},
                            {"text", first.text},
                            {"more", first.more}});
    }
    runs.push_back({{"folder", folder},
                    {"ranks", verdict.ranks},
                    {"steps", verdict.steps},
                    {"events", verdict.events},
                    {"notes", verdict.remarks},
                    {"violations", violations}});
  }
  return {{"runs", runs}};
}

// What the program ends with: the first violation, and how many kinds there are.
std::optional<Error> error_of(const std::vector<Judged>& all) {
  const Violation* first = nullptr;
  std::string folder;
  std::size_t kinds = 0;
  bool collectives_only = true;
  for (const auto& [path, verdict] : all) {
    for (const auto& [kind, violation] : verdict.violations) {
      collectives_only = collectives_only && info(kind).concern == verify::Concern::collectives;
      if (kinds++ > 0) continue;
      first = &violation;
      folder = path;
    }
  }
  if (first == nullptr) return std::nullopt;
  const std::string what =
      printable(fmt::format("the log of '{}' breaks {} rule(s), first in {}: {}", folder, kinds,
                            place_of(*first), first->text));
  const std::string way_out = "docs/verify.md says what each kind means, and where to look";
  if (collectives_only) return Error(Code::log_collectives, what, way_out);
  return Error(Code::log_states, what, way_out);
}

int run_verify(const std::string& folder, bool json, bool plain) {
  std::vector<Judged> judged;
  try {
    judged = judge(folder);
  } catch (const log::Unreadable& unreadable) {
    throw Error(Code::run_folder, printable(unreadable.what()), unreadable.way_out);
  }
  const std::optional<Error> error = error_of(judged);
  if (json) {  // one value, with everything in it
    Json result = to_json(judged);
    if (error) result["error"] = error_json(*error, std::nullopt);
    std::cout << result.dump(2, ' ', false, Json::error_handler_t::replace) << std::endl;
    return error ? error->exit_status() : 0;
  }
  const Style style = choose_style(plain, output_is_terminal());
  for (std::size_t i = 0; i < judged.size(); ++i) {
    std::cout << (i > 0 ? "\n" : "") << text_of(judged[i], style) << std::flush;
  }
  if (error) throw Error(*error);
  return 0;
}

}  // namespace

Subcommand verify_subcommand() {
  const auto declare = [](CLI::App& app) -> std::function<int()> {
    struct Flags {
      std::string folder;
      bool json = false, plain = false;
    };
    const auto flags = std::make_shared<Flags>();
    app.add_option("RUN", flags->folder, "The run folder, of train or compare")->required();
    app.add_flag("--json", flags->json, "Print the result as JSON, and nothing else");
    app.add_flag("--plain", flags->plain, "Print in ASCII");
    return [flags] { return run_verify(flags->folder, flags->json, flags->plain); };
  };
  return {"verify", "Replay a run's logs against the state machine, the ledger and the collectives",
          declare, false};
}

}  // namespace zerolab
