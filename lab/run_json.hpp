#pragma once

#include <nlohmann/json.hpp>

#include "lab/run.hpp"

namespace zerolab {

/// run.json: everything needed to repeat the run, and the declared state machine.
nlohmann::ordered_json run_json(const Plan& plan, const Effective& effective,
                                const Training& training, const Communicator& communicator);

nlohmann::ordered_json to_json(const ModelDescription& model);

// What run.json says of the model that a training builds, under `parameters` and `modules`.
nlohmann::ordered_json parameters_json(const Training& training);
nlohmann::ordered_json modules_json(const Training& training);

}  // namespace zerolab
