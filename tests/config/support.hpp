#pragma once

#include <algorithm>
#include <string>
#include <string_view>

#include "stages/config/resolve.hpp"

namespace zerolab {

/// A configuration file on four ranks, with a preset's batch size so that small files are enough.
inline ResolveInput config(std::string text, int ranks = 4) {
  ResolveInput input;
  input.preset = {{"train_micro_batch_size_per_gpu", 2, "preset gpt-nano"}};
  input.file = ConfigFile{"ds.json", std::move(text)};
  input.world_size = ranks;
  input.world_size_source = "-n " + std::to_string(ranks);
  return input;
}

/// The row of one key; an empty one if there is none.
inline SettingRow row_of(const Effective& effective, std::string_view key) {
  const auto found = std::find_if(effective.rows.begin(), effective.rows.end(),
                                  [&](const SettingRow& row) { return row.key == key; });
  return found == effective.rows.end() ? SettingRow{} : *found;
}

}  // namespace zerolab
