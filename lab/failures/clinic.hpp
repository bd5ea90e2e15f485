#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "lab/failures/failure.hpp"

namespace zerolab {

/// What a command line of zerolab did.
struct RunResult {
  std::string line;  // as one may type it
  int status = 0;
  std::string out, err;
  double seconds = 0;

  /// "ZL401", of the first error it printed; empty if there was none.
  std::string code() const;
};

/// One thing that a failure's page promises.
struct Verdict {
  std::string what;
  bool holds = false;
  std::string but = {};  // what was found instead, or the values it was judged by
};

/// What came of a failure.
struct Examination {
  Failure failure;
  int ranks = 0;
  std::optional<RunResult> measured;
  RunResult broken, fixed;
  std::vector<std::string> advised;   // values that the fixed run took from out-of-memory reports
  std::vector<std::string> evidence;  // lines
  std::vector<Verdict> verdicts;

  bool as_documented() const;
};

/// Runs the broken case and the fixed one with so many ranks, as threads, in folders below
/// `folder`, and judges both by the failure's page. `program` is zerolab. Throws Error for a page
/// that cannot be followed or a folder that cannot be used.
Examination examine(const Failure& failure, int ranks, const std::filesystem::path& program,
                    const std::filesystem::path& folder);

/// The id of the failure, what was run and printed, the verdicts.
nlohmann::ordered_json to_json(const Examination& examination);
/// id, stage, kind, title, symptom, cause, fix, silent, exit_status, code.
nlohmann::ordered_json to_json(const Failure& failure);

}  // namespace zerolab
