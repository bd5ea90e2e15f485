#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace zerolab {

/// One run of a failure, and how it ends.
struct ClinicRun {
  /// A command line behind "zerolab", words between blanks; what stands in braces is an expression
  /// (lab/failures/findings.hpp), {config} the file with the configuration, {folder} a folder that
  /// the runs of a failure share.
  std::string line;
  std::string config = {};  // the text of that file
  int exit_status = 0;
  std::string code = {};               // "ZL401"; empty: none
  std::vector<std::string> says = {};  // parts of what it prints
};

/// Which events of the log show the cause: those that have all of these fields, the last few.
struct Evidence {
  bool of_the_fixed = false;  // run; else of the broken one
  int rank = 0;
  nlohmann::json fields = nlohmann::json::object();
  std::size_t count = 4;
  bool busy = false;  // instead: when compute waited, in the last step
};

/// A documented failure: a page of lab/failures, made of a heading, a paragraph about it, the
/// sections Symptom, Cause and Fix, and a block of JSON with the runs (lab/failures/README.md).
struct Failure {
  std::string id;    // the file's name
  std::string kind;  // its folder's
  std::string title;
  std::string about, symptom, cause, fix;  // paragraphs of Markdown
  std::string stage;                       // "3", "1-3"
  int least_ranks = 2;
  std::optional<ClinicRun> measured;  // runs before the others, for what they need to know
  ClinicRun broken, fixed;
  std::vector<std::string> checks;  // expressions that hold when both runs have ended
  std::vector<Evidence> evidence;

  /// Whether nothing but the numbers shows it.
  bool silent() const { return broken.exit_status == 0; }
};

/// Throws Error (Code::clinic_page) for one that is not as lab/failures/README.md says.
Failure read_failure(const std::filesystem::path& page);

/// All pages below this folder, by kind and id.
std::vector<Failure> read_failures(const std::filesystem::path& folder);

/// The first sentence of a paragraph: what a table has room for.
std::string first_sentence(const std::string& paragraph);

}  // namespace zerolab
