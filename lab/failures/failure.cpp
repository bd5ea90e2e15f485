#include "lab/failures/failure.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <sstream>

#include "stages/base/error.hpp"
#include "stages/base/nearest.hpp"
#include "stages/base/read_file.hpp"

namespace zerolab {
namespace {

using Json = nlohmann::json;

/// The kinds, in the order of the list.
constexpr std::array kKinds{"state",         "memory",        "numerics",
                            "communication", "configuration", "checkpoint"};

/// A page while it is read; knows what to say when it is not as it should be.
class Page {
 public:
  explicit Page(const std::filesystem::path& path) : path_(path) {
    std::istringstream lines(read_text());
    std::string section = "about";
    bool in_block = false;
    for (std::string line; std::getline(lines, line);) {
      if (line.rfind("```", 0) == 0) {
        in_block = !in_block;
        continue;
      }
      if (in_block) {
        block_ += line + '\n';
      } else if (line.rfind("# ", 0) == 0) {
        title_ = line.substr(2);
      } else if (line.rfind("## ", 0) == 0) {
        section = line.substr(3);
      } else {
        sections_[section] += line + '\n';
      }
    }
    if (title_.empty()) refuse("has no heading (# ...)");
  }

  [[noreturn]] void refuse(const std::string& why) const {
    throw Error(Code::clinic_page, fmt::format("{} {}", path_.string(), why),
                "lab/failures/README.md says what a page of the failure clinic is made of");
  }

  const std::string& title() const { return title_; }

  std::string section(const std::string& name) const {
    const auto found = sections_.find(name);
    std::string text = found == sections_.end() ? "" : found->second;
    const std::size_t begin = text.find_first_not_of(" \n");
    if (begin == std::string::npos) refuse(fmt::format("has no section '{}'", name));
    return text.substr(begin, text.find_last_not_of(" \n") + 1 - begin);
  }

  Json runs() const {
    try {
      return Json::parse(block_, nullptr, true, true);
    } catch (const Json::parse_error& error) {
      refuse(fmt::format("has no block of JSON that can be read: {}", error.what()));
    }
  }

  /// A member that must or may be there, of the type of `otherwise`.
  template <typename T>
  T member(const Json& object, const std::string& name, const std::optional<T>& otherwise) const {
    if (!object.contains(name)) {
      if (otherwise) return *otherwise;
      refuse(fmt::format("lacks \"{}\" in its block of JSON", name));
    }
    try {
      return object.at(name).get<T>();
    } catch (const Json::exception&) {
      refuse(fmt::format("has a \"{}\" of the wrong type in its block of JSON", name));
    }
  }

  void expect_only(const Json& object, const std::vector<std::string>& known) const {
    if (!object.is_object()) refuse("has something else than an object where one belongs");
    for (const auto& [name, value] : object.items()) {
      if (std::find(known.begin(), known.end(), name) != known.end()) continue;
      refuse(fmt::format("has a \"{}\" in its block of JSON, which nothing reads{}", name,
                         did_you_mean(name, known)));
    }
  }

 private:
  std::string read_text() const {
    if (std::optional<std::string> text = read_file(path_)) return *std::move(text);
    refuse("cannot be read");
  }

  std::filesystem::path path_;
  std::string title_, block_;
  std::map<std::string, std::string> sections_;
};

ClinicRun read_run(const Page& page, const Json& json) {
  page.expect_only(json, {"run", "config", "config_text", "exit", "code", "says"});
  ClinicRun run;
  run.line = page.member<std::string>(json, "run", std::nullopt);
  run.exit_status = page.member<int>(json, "exit", 0);
  run.code = page.member<std::string>(json, "code", "");
  run.says = page.member<std::vector<std::string>>(json, "says", std::vector<std::string>{});
  run.config = page.member<std::string>(json, "config_text", "");
  if (json.contains("config")) run.config = json.at("config").dump(2) + '\n';
  return run;
}

Evidence read_evidence(const Page& page, const Json& json) {
  page.expect_only(json, {"of", "rank", "events", "last", "busy"});
  Evidence evidence;
  const auto of = page.member<std::string>(json, "of", "broken");
  if (of != "broken" && of != "fixed") page.refuse("has evidence of neither broken nor fixed");
  evidence.of_the_fixed = of == "fixed";
  evidence.rank = page.member<int>(json, "rank", 0);
  evidence.fields = page.member<Json>(json, "events", Json::object());
  evidence.count = page.member<std::size_t>(json, "last", 4);
  evidence.busy = page.member<bool>(json, "busy", false);
  return evidence;
}

}  // namespace

Failure read_failure(const std::filesystem::path& path) {
  const Page page(path);
  Failure failure;
  failure.id = path.stem().string();
  failure.kind = std::filesystem::absolute(path).parent_path().filename().string();
  failure.title = page.title();
  failure.about = page.section("about");
  failure.symptom = page.section("Symptom");
  failure.cause = page.section("Cause");
  failure.fix = page.section("Fix");
  const Json runs = page.runs();
  page.expect_only(runs,
                   {"stage", "least_ranks", "measured", "broken", "fixed", "evidence", "checks"});
  failure.stage = page.member<std::string>(runs, "stage", std::nullopt);
  failure.least_ranks = page.member<int>(runs, "least_ranks", 2);
  if (runs.contains("measured")) failure.measured = read_run(page, runs.at("measured"));
  failure.broken = read_run(page, page.member<Json>(runs, "broken", std::nullopt));
  failure.fixed = read_run(page, page.member<Json>(runs, "fixed", std::nullopt));
  if (failure.fixed.exit_status != 0) page.refuse("has a fixed run that fails");
  failure.checks =
      page.member<std::vector<std::string>>(runs, "checks", std::vector<std::string>{});
  if (failure.silent() && failure.checks.empty()) {
    page.refuse("has a broken run that ends well, and no \"checks\" that would show it broken");
  }
  for (const Json& each : page.member<Json>(runs, "evidence", Json::array())) {
    failure.evidence.push_back(read_evidence(page, each));
  }
  return failure;
}

std::vector<Failure> read_failures(const std::filesystem::path& folder) {
  std::vector<Failure> failures;
  for (const char* kind : kKinds) {
    std::set<std::filesystem::path> pages;
    std::error_code none;
    for (const auto& entry : std::filesystem::directory_iterator(folder / kind, none)) {
      if (entry.path().extension() == ".md") pages.insert(entry.path());
    }
    for (const std::filesystem::path& page : pages) failures.push_back(read_failure(page));
  }
  if (failures.empty()) {
    throw Error(Code::clinic_page, fmt::format("there are no failures in {}", folder.string()),
                "the folder share/zerolab/failures belongs to the program: install both");
  }
  return failures;
}

std::string first_sentence(const std::string& paragraph) {
  std::string sentence;
  for (std::size_t i = 0; i < paragraph.size(); ++i) {
    sentence += paragraph[i] == '\n' ? ' ' : paragraph[i];
    const bool last = i + 1 == paragraph.size();
    if (paragraph[i] == '.' && (last || paragraph[i + 1] == ' ' || paragraph[i + 1] == '\n')) break;
  }
  return sentence;
}

}  // namespace zerolab
