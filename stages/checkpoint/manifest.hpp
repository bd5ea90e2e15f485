#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "stages/checkpoint/file.hpp"
#include "stages/checkpoint/safetensors.hpp"
#include "stages/engine/engine.hpp"

namespace zerolab {

// The states that a checkpoint has of a parameter, by name. Moments have DeepSpeed's names.
inline constexpr std::string_view kWeights = "weights";  // as the model computes with them
inline constexpr std::string_view kMaster = "master";    // fp32, where the weights have 16 bits
std::vector<std::string> moment_names(const OptimizerSettings& settings);

struct SavedParameter {
  std::string name;
  Shape shape;
  bool requires_grad = true;
};

/// Elements of one parameter that a shard has.
struct SavedSlice {
  std::size_t parameter = 0;
  Range range;
};

/// The file of one rank.
struct Shard {
  std::string file;
  FileDigest digest;
  std::vector<SavedSlice> slices;
};

/// What a checkpoint says of itself (manifest.json, docs/checkpoints.md). Everything is keyed by
/// parameter and global element, so that nothing depends on who reads it.
struct Manifest {
  static constexpr int kVersion = 1;

  std::string tag;
  int stage = 0;
  Dtype dtype = Dtype::fp32;         // of the weights
  std::vector<std::string> moments;  // their names
  TrainingProgress progress;
  std::vector<std::uint64_t> hashes;  // Engine::state_hashes
  std::vector<SavedParameter> parameters;
  std::map<std::string, std::string> tied;  // a second name of a parameter -> its name
  std::vector<Shard> shards;                // by rank
  nlohmann::ordered_json run;               // whatever the program wants to know again

  int world_size() const { return static_cast<int>(shards.size()); }
  bool has_master(const SavedParameter& parameter) const {
    return dtype != Dtype::fp32 && parameter.requires_grad;
  }
  /// What the weights are rounded from, or themselves.
  std::string_view exact_state(const SavedParameter& parameter) const {
    return has_master(parameter) ? kMaster : kWeights;
  }
  Dtype dtype_of(std::string_view state) const { return state == kWeights ? dtype : Dtype::fp32; }
  /// In the order in which a shard has them.
  std::vector<std::string> states() const;
  bool has(std::string_view state, const SavedParameter& parameter) const;

  /// The header of a shard: state by state, in each the slices in order, as "state/parameter".
  SafetensorsWriter shard_header(std::size_t rank, const std::vector<SavedSlice>& slices) const;
  SafetensorsWriter shard_header(std::size_t rank) const {
    return shard_header(rank, shards[rank].slices);
  }
  /// Index of the parameter of this name; parameters.size() if there is none.
  std::size_t find(std::string_view name) const;
};

/// Has its own checksum.
std::string to_text(const Manifest& manifest);

/// One shard of it, and back: how ranks tell each other what they have written.
std::string shard_text(const Shard& shard, const Manifest& manifest);
Shard shard_in(std::string_view text, const Manifest& manifest, std::size_t rank);

/// `file` is how messages call it. Throws Error (Code::checkpoint_damaged) for one that is not
/// whole or does not make sense: every element must be in exactly one shard; and
/// (Code::checkpoint_mismatch) for one that a later zerolab has written.
Manifest parse_manifest(std::string_view text, const std::string& file);

}  // namespace zerolab
