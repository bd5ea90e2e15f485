#pragma once

#include "visualize/log/run_folder.hpp"

namespace zerolab::log {

// What a report tells of a run beyond what is needed to judge it. All of it may be missing: logs of
// other implementations have less. What is there must be of the right type.

struct Setting {
  std::string key, value, origin;
  bool active = true;
};

/// More of run.json.
struct RunDetails {
  std::string command, started, version, transport, device, model, data, deliberate_mistake;
  std::optional<double> bandwidth, latency;  // of an emulated link: bytes a second, seconds
  std::optional<Count> steps;                // planned
  std::optional<Count> resumed_at;           // steps that were done before this run
  std::string resumed_from;                  // the checkpoint
  std::optional<Count> sequence_length;
  std::vector<Setting> settings;
  std::vector<std::string> warnings;

  /// The value of a setting, nothing if the run does not have it or does not use it.
  std::optional<std::string> setting(std::string_view key) const;
  std::optional<Count> count_setting(std::string_view key) const;
};

/// More of summary.json. Seconds, and tokens a second of all ranks.
struct SummaryDetails {
  struct Step {
    Count step = 0;
    std::optional<double> lr, scale, seconds;
  };
  std::vector<Step> steps;  // as many as Summary has
  std::string dtype;
  std::vector<std::pair<Count, std::optional<double>>> validation;  // step, loss
  std::optional<double> comm_seconds, exposed_comm_seconds, overlap_fraction, tokens_per_second;
  std::optional<Count> prefetch_hits, prefetch_misses, prefetch_unused;
};

/// A line of the list of an out-of-memory report; `bytes` below 0 were given back.
struct Holder {
  std::string owner, category, where;
  double bytes = 0;
  std::optional<Count> live;
};

/// More of error.json.
struct FailureDetails {
  std::string way_out;
  struct OutOfMemory {
    Count requested = 0, budget = 0, live = 0, short_by = 0;
    std::string pool, owner, category, where;
    std::vector<Holder> holders, last;
  };
  std::optional<OutOfMemory> out_of_memory;
};

/// compare.json
struct Comparison {
  bool bitwise_equal = false;
  double max_ulp = 0;
};

/// Of the files in a run folder; empty where a file is not there. All throw Unreadable.
RunDetails read_run_details(const std::filesystem::path& folder);
SummaryDetails read_summary_details(const std::filesystem::path& folder);
FailureDetails read_failure_details(const std::filesystem::path& folder);
std::optional<Comparison> read_comparison(const std::filesystem::path& folder);

}  // namespace zerolab::log
