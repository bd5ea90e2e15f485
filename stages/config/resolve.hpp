#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "stages/config/settings.hpp"

namespace zerolab {

/// Where a setting's value came from. Later ones win; `derived` follows from others.
enum class Origin { default_value, preset, checkpoint, config, flag, derived };
std::string_view name_of(Origin origin);

/// One value that somebody gave: a key as DeepSpeed spells it, with its blocks before it
/// ("zero_optimization.stage"). `source` is how messages call the giver: "preset gpt-nano",
/// "ds_config.json", "--micro-batch".
struct Given {
  std::string key;
  nlohmann::json value;
  std::string source;
};

struct ConfigFile {
  std::string name;
  std::string text;
};

struct ResolveInput {
  std::vector<Given> preset;
  std::vector<Given> checkpoint;  // Effective::given of the training that is resumed
  std::optional<ConfigFile> file;
  std::vector<Given> flags;
  int world_size = 1;
  std::string world_size_source = "-n 1";  // for messages
};

/// One line of what every run prints: a setting, its value, who said so, and whether it matters.
struct SettingRow {
  std::string key;
  std::string value;
  Origin origin = Origin::default_value;
  std::string source;  // of preset, checkpoint, config and flag
  bool active = true;
  std::string reason;  // why it is ignored, or what it was derived from
};
nlohmann::json to_json(const SettingRow& row);

/// What a run goes by.
struct Effective {
  Settings settings;
  Index train_batch_size = 0;  // sequences of one optimizer step, over all ranks
  std::vector<SettingRow> rows;
  std::vector<std::string> warnings;
  nlohmann::json given;  // key -> value: from these alone the same settings follow, at any N
};

/// DeepSpeed's defaults, then the preset, then the checkpoint, then the file, then the flags.
/// Throws Error that lists every mistake at once, one a line, with the code of the first
/// (Code::config_syntax alone, or config_unknown_key, config_value, config_contradiction,
/// config_unsupported).
Effective resolve(const ResolveInput& input);

/// Reads the file that --config names. Throws Error (Code::usage) if it cannot be read.
ConfigFile read_config_file(const std::string& path);

}  // namespace zerolab
