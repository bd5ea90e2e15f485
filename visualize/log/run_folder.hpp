#pragma once

#include <array>
#include <filesystem>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "visualize/log/event.hpp"

namespace zerolab::log {

// What is read of the files of a run folder beside its events (docs/log-format.md). Fields that
// nobody here needs are not looked at, and may be missing.

struct Parameter {
  std::string name;
  Count numel = 0;
  bool trainable = true;
  bool persistent = false;  // stays whole between steps in stage 3
};

struct Module {
  std::string name, class_name;
  bool leaf = false;
  std::vector<std::string> children, parameters, external;
};

struct Move {
  Status from, to;
  Cause cause;
  auto operator<=>(const Move&) const = default;
};
struct GradientMove {
  GradientStatus from, to;
  auto operator<=>(const GradientMove&) const = default;
};

/// The checkpoint that a run went on from.
struct Resumed {
  std::string checkpoint;
  Count step = 0;
};

/// run.json
struct Run {
  Count stage = 0, world_size = 1;
  std::optional<Count> device_memory;
  bool check_collectives = false;
  std::optional<Resumed> resumed;
  std::vector<Parameter> parameters;
  std::vector<Module> modules;  // the first is the model itself
  std::vector<Move> moves;      // of the declared state machine
  std::vector<GradientMove> gradient_moves;
};

/// Bytes by category.
using Usage = std::array<Count, kWords<Category>.size()>;

struct MemoryUse {
  Usage peak{}, category_peak{}, steady{};
};

struct Traffic {
  Count calls = 0, elements = 0, bytes_sent = 0;
  bool operator==(const Traffic&) const = default;
};
using TrafficByOp = std::map<Op, Traffic>;

/// summary.json
struct Summary {
  struct Step {
    std::optional<double> loss, grad_norm;
    bool skipped = false;
    std::string hash;
  };
  struct Checkpoint {
    Count step = 0;
    std::string path;
    Count bytes = 0;  // of all ranks
  };
  std::vector<Step> steps;
  std::vector<Checkpoint> checkpoints;
  std::vector<MemoryUse> memory;  // of every rank
  TrafficByOp comm, validation_comm, generation_comm;
};

/// error.json
struct Failure {
  std::string code;
  std::optional<Count> rank;  // that is to blame, if one is
  std::string message;
};

struct RunFolder {
  std::filesystem::path path;
  Run run;
  std::optional<Summary> summary;  // of a run that ended well
  std::optional<Failure> failure;
};

/// A folder or file that cannot be read as what it should be. `what()` names it.
struct Unreadable : std::runtime_error {
  Unreadable(const std::string& what, std::string way_out_text)
      : std::runtime_error(what), way_out(std::move(way_out_text)) {}
  std::string way_out;
};

/// Throws Unreadable.
RunFolder read_run_folder(const std::filesystem::path& folder);

/// error.json, if it is there.
std::optional<Failure> read_failure(const std::filesystem::path& folder);

/// The runs in a folder: itself, or the stage<k> of a comparison, in their order. Throws Unreadable
/// when there is none.
std::vector<std::filesystem::path> runs_in(const std::filesystem::path& folder);

/// "rank2.events.jsonl"
std::string event_file_name(Count rank);

}  // namespace zerolab::log
