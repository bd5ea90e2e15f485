#include "lab/error_report.hpp"

#include <fmt/color.h>
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <iostream>
#include <sstream>
#include <string_view>

#include "lab/progress.hpp"
#include "lab/terminal.hpp"
#include "lab/wrap.hpp"

namespace zerolab {
namespace {

using Json = nlohmann::ordered_json;

bool has(const std::vector<std::string>& arguments, std::string_view flag) {
  return std::find(arguments.begin(), arguments.end(), flag) != arguments.end();
}

std::string_view environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

bool terminal_knows_escapes() {
  const std::string_view terminal = environment("TERM");
  return !terminal.empty() && terminal != "dumb";
}

// "rank 2" or "ranks 1 and 0", not only the word.
bool names_a_rank(std::string_view message) {
  for (const std::string_view word : {"rank ", "ranks "}) {
    for (auto at = message.find(word); at != std::string_view::npos;
         at = message.find(word, at + 1)) {
      const std::size_t behind = at + word.size();
      if (behind < message.size() &&
          std::isdigit(static_cast<unsigned char>(message[behind])) != 0) {
        return true;
      }
    }
  }
  return false;
}

// Lines that are aligned within, as a list or a caret below its place, stay as they are.
std::string laid_out(const std::string& line, std::size_t columns) {
  const std::size_t begin = std::min(line.find_first_not_of(' '), line.size());
  if (line.find("  ", begin) != std::string::npos) return line + '\n';
  return wrapped(line, columns, std::string(begin + 4, ' ')) + '\n';
}

// Ways out that exclude each other have a line each.
std::string alternatives(const std::string& way_out) {
  constexpr std::string_view kOr = "; or ";
  std::string lines = "\n    " + way_out;
  for (auto at = lines.find(kOr); at != std::string::npos; at = lines.find(kOr, at)) {
    lines.replace(at, kOr.size(), "\n    or ");
  }
  return lines.find('\n', 1) == std::string::npos ? " " + way_out : lines;
}

}  // namespace

ErrorStyle error_style(const std::vector<std::string>& arguments) {
  ErrorStyle style;
  style.json = has(arguments, "--json");
  if (style.json || !errors_are_watched()) return style;
  style.columns = terminal_columns();
  style.color = errors_go_to_terminal() && terminal_knows_escapes() &&
                environment("NO_COLOR").empty() && !has(arguments, "--plain");
  return style;
}

std::optional<int> rank_to_blame(const Error& error, int reporting) {
  const bool its_own = error.code() == Code::internal || error.code() == Code::communication ||
                       error.exit_status() == 3 || error.exit_status() == 4;
  if (!its_own || error.code() == Code::edit_without_owner) return std::nullopt;
  return reporting;
}

Json error_json(const Error& error, std::optional<int> rank) {
  Json json{{"code", code_name(error.code())},
            {"exit_status", error.exit_status()},
            {"rank", rank ? Json(*rank) : Json(nullptr)},
            {"message", error.what_happened()},
            {"way_out", error.way_out()}};
  if (const Json details = error.details(); !details.is_null()) json["details"] = details;
  return json;
}

std::string error_text(const Error& error, std::optional<int> rank, const ErrorStyle& style) {
  std::string head = "zerolab: ";
  if (rank && !names_a_rank(error.what_happened())) head += fmt::format("rank {}: ", *rank);
  if (style.columns == 0) return head + error.what() + '\n';

  const std::string code = code_name(error.code());
  std::string way_out = error.way_out().empty() ? "" : "  way out:" + alternatives(error.way_out());
  std::istringstream lines(fmt::format("{}{}: {}\n{}{}  more: zerolab explain {}", head, code,
                                       error.what_happened(), way_out, way_out.empty() ? "" : "\n",
                                       code));
  std::string text;
  for (std::string line; std::getline(lines, line);) text += laid_out(line, style.columns);
  if (!style.color) return text;
  const std::string label = "way out:";
  if (const auto at = text.rfind("\n  " + label); at != std::string::npos) {
    text.replace(at + 3, label.size(), fmt::format(fmt::emphasis::bold, "{}", label));
  }
  const auto bold_red = fmt::emphasis::bold | fmt::fg(fmt::terminal_color::red);
  return text.replace(head.size(), code.size(), fmt::format(bold_red, "{}", code));
}

void report_error(const Error& error, std::optional<int> rank, const ErrorStyle& style) {
  std::cout.flush();
  if (style.json) {
    const Json json{{"error", error_json(error, rank)}};
    std::cout << json.dump(2, ' ', false, Json::error_handler_t::replace) << std::endl;
    return;
  }
  // Another rank's progress line may stand where the message begins.
  if (style.columns > 0 && terminal_knows_escapes()) std::cerr << kBackAndErase;
  std::cerr << error_text(error, rank, style) << std::flush;
}

}  // namespace zerolab
