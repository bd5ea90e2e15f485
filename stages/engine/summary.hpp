#pragma once

#include <nlohmann/json.hpp>

#include "stages/engine/training.hpp"

namespace zerolab {

/// Tokens of all ranks a second, from the median step.
double tokens_per_second(const RankReport& report, const Training& training, int ranks);

Index skipped_steps(const RankReport& report);

/// summary.json (docs/log-format.md), from rank 0's report.
nlohmann::ordered_json summary_json(const RankReport& report, const Training& training, int ranks);

// Parts of it that others have too.
nlohmann::ordered_json generations_json(const RankReport& report, const Training& training);
nlohmann::ordered_json to_json(const Usage& usage);
nlohmann::ordered_json to_json(const MemoryUse& memory);
nlohmann::ordered_json to_json(const std::map<Op, Traffic>& traffic);
nlohmann::ordered_json to_json(const FetchCounts& fetches);
/// null when it is not finite.
nlohmann::ordered_json number_json(double value);
/// 16 hexadecimal digits.
std::string hash_text(std::uint64_t hash);

/// The declared state machine, for run.json: {"parameter": [...], "gradient": [...]}.
nlohmann::ordered_json state_machine_json();

}  // namespace zerolab
