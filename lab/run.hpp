#pragma once

#include <atomic>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "lab/options.hpp"
#include "lab/resumed.hpp"
#include "stages/config/resolve.hpp"
#include "stages/engine/byte_data.hpp"
#include "stages/engine/training.hpp"

namespace zerolab {

/// What all ranks of a command work from. It is made from the command line alone, so every process
/// makes the same one; ranks that are threads share it.
struct Plan {
  RunOptions options;
  std::string command_line;
  int ranks = 1;
  ModelDescription model;
  std::uint64_t seed = 0;
  std::vector<std::string> frozen;
  std::shared_ptr<const ByteData> data;
  std::shared_ptr<const Resumed> resumed;  // null: training begins anew
  std::shared_ptr<std::atomic<bool>> folder_is_ours = std::make_shared<std::atomic<bool>>(false);
};

/// Reads what the options name. Throws Error (exit status 2) for anything that cannot be used.
Plan make_plan(const RunOptions& options, std::string command_line, int ranks);

/// What a checkpoint of this training has to say for the next command (Manifest::run).
nlohmann::ordered_json run_for_checkpoint(const Plan& plan, const Effective& effective);

/// What the model's preset says where neither configuration nor flag does.
std::vector<Given> preset_settings(const ModelDescription& model);

/// The model as the options have it, with what is frozen. Throws Error (Code::usage).
std::unique_ptr<Model> build_model_of(const Plan& plan);

/// The settings for one stage; `stage` only where the command sets it (compare).
Effective settings_for(const Plan& plan, std::optional<int> stage);

/// The training that plan and settings describe, with the deliberate mistake, for this rank.
Training training_for(const Plan& plan, const Effective& effective, int rank);

/// Trains on this rank and writes rank<r>.events.jsonl, and on rank 0 run.json and summary.json,
/// into `folder`, which must be there and empty. `recorder` must be made by recorder_for. `saved`
/// is what the training saves meanwhile, for the report.
RankReport run_in_folder(Communicator& communicator, Recorder& recorder, const Plan& plan,
                         const Effective& effective, const Training& training,
                         const std::filesystem::path& folder,
                         const std::vector<CheckpointResult>& saved = {});

/// Writes events into the folder as the options say, and shows them on rank 0 if asked to.
std::unique_ptr<Recorder> recorder_for(const Communicator& communicator, const RunOptions& options,
                                       const std::filesystem::path& folder);

/// What must be the same on every rank, or the ranks would train different things.
nlohmann::ordered_json facts_of(const Plan& plan, const std::vector<Effective>& effective);

/// Makes sure that all ranks were started alike (stages/comm/agreement.hpp). Then rank 0 makes the
/// run folder (lab/run_folder.hpp) and what is in `subfolders`; from then on a failure may write
/// error.json into it. `effective` has the settings of every stage that will be trained.
void prepare_together(Communicator& communicator, const Plan& plan,
                      const std::vector<Effective>& effective,
                      const std::vector<std::string>& subfolders = {});

void write_json(const std::filesystem::path& file, const nlohmann::ordered_json& json);

}  // namespace zerolab
