#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "stages/comm/link.hpp"
#include "stages/config/resolve.hpp"
#include "stages/engine/sampling.hpp"
#include "stages/memory/ledger.hpp"

namespace zerolab {

enum class Command { train, compare, import, generate };

/// What train and import write beside the run folder.
struct Saving {
  std::optional<std::string> folder;        // --save: of checkpoints
  Index every = 0;                          // --save-every: steps; 0: after the last step only
  Index keep = 0;                           // --keep: so many of the latest; 0: all
  std::optional<std::string> weights_file;  // --save-model: all weights, after the last step
};
enum class LogLevel { off, steps, events };

/// What --show prints while a run goes on.
struct Shown {
  bool transitions = false, comm = false, memory = false;
};

/// The command line of a command with ranks, as plain values. What also stands in a configuration
/// is in `settings`.
struct RunOptions {
  Command command = Command::train;

  std::optional<std::string> model;     // preset or file; see kDefaultModel
  std::optional<std::string> data;      // file or folder; the default text if not given
  std::optional<std::string> config;    // DeepSpeed-style JSON file
  std::vector<Given> settings;          // flags that are settings, for ResolveInput::flags
  std::vector<int> stages{0, 1, 2, 3};  // compare only: train's stage is a setting
  Index steps = 30;
  std::optional<std::uint64_t> seed;  // see kDefaultSeed
  Index validate_every = 0;           // 0: after the last step only
  std::vector<std::string> frozen;    // parameters, or modules with all they have

  std::optional<std::string> resume;   // a checkpoint, as Checkpoint::open has it, or kAuto
  std::optional<std::string> weights;  // import: the file
  Saving saving;

  std::optional<Sampling> generate;  // text, while and after it trains
  Index generate_every = 0;          // 0: after the last step only

  std::optional<int> ranks;                  // -n; under mpirun never given
  int threads = 1;                           // per rank
  Index device_memory = Ledger::kUnlimited;  // bytes per rank
  int comm_timeout = 60;                     // seconds; 0: never
  Link link;                                 // emulated between the ranks
  bool check_collectives = false;            // compare what the ranks call before data moves

  std::string out;  // the run folder
  LogLevel log_level = LogLevel::events;
  Shown show;
  bool json = false;   // the result as JSON on standard output, and nothing else there
  bool plain = false;  // ASCII tables

  std::optional<std::string> broken;  // --break: a deliberate mistake (lab/failures/mistakes)
  std::optional<std::string> mended;  // --mend: what it is made in, without the mistake
};

/// Where neither command line nor checkpoint says otherwise.
inline constexpr std::string_view kDefaultModel = "gpt-nano";
inline constexpr std::uint64_t kDefaultSeed = 1;

/// --resume: the latest checkpoint of --save, if there is one.
inline constexpr std::string_view kAuto = "auto";

/// How many ranks run as threads when neither -n nor mpirun says so.
inline constexpr int kDefaultRanks = 4;

/// What a command line asks for.
struct Invocation {
  RunOptions options;               // of one with ranks, unless one of the next two is there
  std::optional<std::string> text;  // to print (help, version) instead of doing anything
  std::function<int()> alone;       // a subcommand without ranks: does it, returns the exit status
};

/// `arguments` without the program's name. Throws Error (Code::usage) that names the nearest flag
/// or subcommand for one that is unknown.
Invocation parse_command_line(const std::vector<std::string>& arguments, bool under_mpirun);

}  // namespace zerolab
