#include "lab/explain.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>
#include <optional>

#include "lab/failures/failure.hpp"
#include "lab/installed.hpp"
#include "lab/table.hpp"
#include "lab/terminal.hpp"
#include "lab/wrap.hpp"
#include "stages/base/error.hpp"
#include "stages/base/nearest.hpp"

namespace zerolab {
namespace {

using Json = nlohmann::ordered_json;
using Part = GuideBlock::Part;

std::string as_code(std::string given) {
  std::transform(given.begin(), given.end(), given.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return given.rfind("ZL", 0) == 0 ? given : "ZL" + given;
}

// Every code that is one slip of the keyboard away: digits are near to many.
std::vector<std::string> nearest_codes(const std::vector<ErrorSection>& sections,
                                       const std::string& code) {
  std::vector<std::string> near;
  for (const ErrorSection& section : sections) {
    if (edit_distance(code, section.code) == 1) near.push_back(section.code);
  }
  return near;
}

std::string indented(const std::string& code) {
  std::string text = "    ";
  for (const char c : code) text += c == '\n' ? std::string("\n    ") : std::string(1, c);
  return text;
}

std::string table_of(const std::vector<ErrorSection>& sections, Style style) {
  Table table;
  table.columns = {{"code", Table::Align::left},
                   {"exit status", Table::Align::right},
                   {"what it means", Table::Align::left}};
  for (const ErrorSection& section : sections) {
    table.rows.push_back({section.code, fmt::to_string(section.exit_status), section.title});
  }
  return draw_table(table, style) + "\n zerolab explain CODE says more about one of them\n";
}

struct ExplainFlags {
  std::optional<std::string> code;
  bool json = false, plain = false;
};

/// None where the pages of the clinic are not at hand.
std::vector<Failure> failures_at_hand() {
  const std::filesystem::path pages = installed("share/zerolab/failures");
  return std::filesystem::exists(pages) ? read_failures(pages) : std::vector<Failure>{};
}

std::vector<std::string> ids_with(const std::string& code, const std::vector<Failure>& failures) {
  std::vector<std::string> ids;
  for (const Failure& failure : failures) {
    if (failure.broken.code == code) ids.push_back(failure.id);
  }
  return ids;
}

std::string answer(const ExplainFlags& flags) {
  const std::vector<ErrorSection> sections = error_sections(error_page());
  const std::vector<Failure> failures = failures_at_hand();
  const auto json_of = [&](const ErrorSection& section) {
    Json json = explanation_json(section);
    json["failures"] = ids_with(section.code, failures);
    return json;
  };
  if (flags.code) {
    const ErrorSection& section = find_section(sections, *flags.code);
    if (flags.json) return json_of(section).dump(2) + '\n';
    const std::size_t columns = terminal_columns();
    const std::vector<std::string> ids = ids_with(section.code, failures);
    const std::string see = fmt::format("In the clinic: zerolab fail {}", fmt::join(ids, " "));
    return explanation(section, columns) + (ids.empty() ? "" : '\n' + wrapped(see, columns) + '\n');
  }
  if (!flags.json) return table_of(sections, choose_style(flags.plain, output_is_terminal()));
  Json all = Json::array();
  for (const ErrorSection& section : sections) all.push_back(json_of(section));
  return all.dump(2) + '\n';
}

}  // namespace

const ErrorSection& find_section(const std::vector<ErrorSection>& sections,
                                 const std::string& given) {
  const std::string code = as_code(given);
  const auto found = std::find_if(sections.begin(), sections.end(),
                                  [&](const ErrorSection& each) { return each.code == code; });
  if (found != sections.end()) return *found;
  const std::vector<std::string> near = nearest_codes(sections, code);
  throw Error(Code::usage,
              fmt::format("explain: '{}' is no error code{}{}", given,
                          near.empty() ? "" : "; near it are ", fmt::join(near, ", ")),
              "zerolab explain lists every code");
}

std::string explanation(const ErrorSection& section, std::size_t columns) {
  std::string text = wrapped(section.code + ": " + section.title, columns) + '\n';
  text += fmt::format("exit status {}: {}\n", section.exit_status, section.exit_meaning);
  Part last = Part::text;
  for (const GuideBlock& block : section.blocks) {
    const bool begins = block.part != last;
    last = block.part;
    text += '\n';
    if (begins && block.part == Part::example) text += "Example:\n\n";
    if (begins && block.part == Part::see_it) text += "See it:\n\n";
    const std::string label = begins && block.part == Part::way_out ? "Way out: " : "";
    text += (block.code ? indented(block.text) : wrapped(label + block.text, columns)) + '\n';
  }
  return text;
}

Json explanation_json(const ErrorSection& section) {
  const std::string see_it = section.part(Part::see_it);
  return {{"code", section.code},
          {"exit_status", section.exit_status},
          {"title", section.title},
          {"text", section.part(Part::text)},
          {"example", section.part(Part::example)},
          {"way_out", section.part(Part::way_out)},
          {"see_it", see_it.empty() ? Json(nullptr) : Json(see_it)}};
}

Subcommand explain_subcommand() {
  const auto declare = [](CLI::App& app) -> std::function<int()> {
    const auto flags = std::make_shared<ExplainFlags>();
    app.add_option("CODE", flags->code,
                   "An error code, as ZL301 or 301; without it all are listed");
    app.add_flag("--json", flags->json, "Print it as JSON, and nothing else");
    app.add_flag("--plain", flags->plain, "Print the list in ASCII");
    return [flags] {
      std::cout << answer(*flags);
      return 0;
    };
  };
  return {"explain", "Explain an error code, or list all", declare};
}

}  // namespace zerolab
