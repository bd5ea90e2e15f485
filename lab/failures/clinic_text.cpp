#include "lab/failures/clinic_text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <sstream>

#include "lab/terminal.hpp"
#include "lab/wrap.hpp"

namespace zerolab {
namespace {

constexpr std::size_t kLinesOfOutput = 12;  // of a run that ends well: its tables

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

/// A row of a table whose cells are several lines high becomes several rows.
void add_high_row(Table& table, const std::vector<std::string>& fixed,
                  const std::vector<std::string>& texts, std::size_t width) {
  std::vector<std::vector<std::string>> columns;
  columns.reserve(fixed.size() + texts.size());
  for (const std::string& cell : fixed) columns.push_back({cell});
  std::size_t height = 1;
  for (const std::string& text : texts) {
    columns.push_back(lines_of(wrapped(text, width)));
    height = std::max(height, columns.back().size());
  }
  for (std::size_t line = 0; line < height; ++line) {
    std::vector<std::string> row;
    row.reserve(columns.size());
    for (const auto& column : columns) row.push_back(line < column.size() ? column[line] : "");
    table.rows.push_back(row);
  }
}

/// Paragraphs with blank lines between them; what is indented by four blanks, a command or a
/// message, keeps its lines.
std::string paragraphs(const std::string& text, std::size_t width) {
  std::string result, paragraph;
  const auto finish_paragraph = [&] {
    if (!paragraph.empty()) result += wrapped("  " + paragraph, width, "  ") + '\n';
    paragraph.clear();
  };
  for (const std::string& line : lines_of(text)) {
    if (line.empty() || line.rfind("    ", 0) == 0) {
      finish_paragraph();
      result += line.empty() ? "\n" : "  " + line + '\n';
    } else {
      paragraph += (paragraph.empty() ? "" : " ") + line;
    }
  }
  finish_paragraph();
  return result;
}

/// What a run printed: its error whole, or the end of its tables.
std::string output_text(const RunResult& result, Style style) {
  std::vector<std::string> lines = lines_of(result.err);
  const std::vector<std::string> tables = lines_of(result.out);
  if (result.status == 0) {
    const std::size_t shown = std::min(kLinesOfOutput, tables.size());
    lines.insert(lines.end(), tables.end() - static_cast<std::ptrdiff_t>(shown), tables.end());
  }
  std::string text;
  for (const std::string& line : lines) {
    if (line.empty()) continue;
    text += fmt::format("  {} {}\n", style == Style::unicode ? "│" : "|", line);
  }
  return text;
}

std::string run_text(const RunResult& result, Style style) {
  const std::string code = result.code();
  return fmt::format("  $ {}\n{}  exit status {}{}, {}\n", result.line, output_text(result, style),
                     result.status, code.empty() ? "" : " (" + code + ")",
                     human_seconds(result.seconds));
}

std::string verdict_text(const Verdict& verdict, Style style) {
  const char* mark =
      style == Style::unicode ? (verdict.holds ? "✓" : "✗") : (verdict.holds ? "ok " : "NOT");
  const bool judged_by_values = verdict.holds && verdict.but.find(" = ") != std::string::npos;
  const std::string found =
      !verdict.holds || judged_by_values ? fmt::format("  [{}]", verdict.but) : "";
  return fmt::format("  {} {}{}\n", mark, verdict.what, found);
}

std::string stage_text(const std::string& stage) {
  return stage.size() == 1 ? "stage " + stage : "stages " + stage;
}

}  // namespace

std::string list_text(const std::vector<Failure>& failures, Style style, std::size_t columns) {
  std::size_t id = 0;
  for (const Failure& failure : failures) id = std::max(id, failure.id.size());
  constexpr std::size_t kStage = 5;
  constexpr std::size_t kGaps = 2 * 4 + 2;
  const std::size_t left = columns > id + kStage + kGaps ? columns - id - kStage - kGaps : 0;
  const std::size_t width = std::max<std::size_t>(left / 3, 20);
  std::string text;
  std::string kind;
  Table table;
  const auto finish_kind = [&] {
    if (!table.rows.empty()) text += draw_table(table, style) + '\n';
  };
  for (const Failure& failure : failures) {
    if (failure.kind != kind) {
      finish_kind();
      kind = failure.kind;
      table = {};
      table.columns = {{kind, Table::Align::left},
                       {"stage", Table::Align::left},
                       {"symptom", Table::Align::left},
                       {"cause", Table::Align::left},
                       {"fix", Table::Align::left}};
    }
    add_high_row(table, {failure.id, failure.stage},
                 {first_sentence(failure.symptom), first_sentence(failure.cause),
                  first_sentence(failure.fix)},
                 width);
  }
  finish_kind();
  return text + fmt::format(
                    "{} failures; zerolab fail {} shows one of them, zerolab fail --all "
                    "tries all\n",
                    failures.size(), failures.front().id);
}

std::string examination_text(const Examination& examination, Style style, std::size_t columns) {
  const Failure& failure = examination.failure;
  const auto paragraph = [width = std::min(columns, kReadableColumns)](const std::string& text) {
    return paragraphs(text, width);
  };
  std::string text = fmt::format("{} ({}, {}, {})\n\n", failure.title, failure.kind,
                                 stage_text(failure.stage), failure.silent() ? "silent" : "loud");
  text += paragraph(failure.about) + '\n';
  if (examination.measured) {
    text += "measured first\n" + run_text(*examination.measured, style) + '\n';
  }
  text += "symptom\n" + paragraph(failure.symptom);
  text += run_text(examination.broken, style) + '\n';
  text += "cause\n" + paragraph(failure.cause);
  for (const std::string& line : examination.evidence) {
    text += fmt::format("  {} {}\n", style == Style::unicode ? "│" : "|", line);
  }
  text += "\nfix\n" + paragraph(failure.fix);
  if (!examination.advised.empty()) {
    text += paragraph(fmt::format("Each run takes the value that the report before it advises: {}.",
                                  fmt::join(examination.advised, ", ")));
  }
  text += run_text(examination.fixed, style) + '\n';
  text += "checked\n";
  for (const Verdict& each : examination.verdicts) text += verdict_text(each, style);
  return text + (examination.as_documented() ? "\nas documented\n" : "\nNOT as documented\n");
}

std::string examination_line(const Examination& examination, Style style) {
  std::string line =
      fmt::format("{} {:<26} {:<4} {:<6} {:>8}\n", examination.as_documented() ? "ok " : "NOT",
                  examination.failure.id, examination.failure.stage,
                  examination.broken.code().empty() ? "silent" : examination.broken.code(),
                  human_seconds(examination.broken.seconds + examination.fixed.seconds));
  for (const Verdict& each : examination.verdicts) {
    if (!each.holds) line += "  " + verdict_text(each, style);
  }
  return line;
}

}  // namespace zerolab
