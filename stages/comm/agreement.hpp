#pragma once

#include <nlohmann/json.hpp>

#include "stages/comm/communicator.hpp"

namespace zerolab {

/// Ranks that are processes each read their own command line and files. Compares what they made of
/// them, a JSON object, before anything is trained.
/// Throws Error (Code::ranks_disagree) on every rank, naming what differs.
void agree(Communicator& communicator, const nlohmann::ordered_json& facts);

}  // namespace zerolab
