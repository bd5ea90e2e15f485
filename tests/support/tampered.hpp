#pragma once

#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "stages/base/types.hpp"

namespace zerolab::test {

/// Opens a checkpoint and reads every element of every state. Throws what that throws.
void read_everything(const std::string& name);

void write_bytes(const std::filesystem::path& file, const std::string& bytes);
/// Changes the bytes of a file.
void edit(const std::filesystem::path& file, const std::function<void(std::string& bytes)>& change);
void flip_bit(const std::filesystem::path& file, Index bit);

/// Changes the manifest of a checkpoint and gives it the checksum that belongs to it then, worked
/// out here and not by what is tested.
void edit_manifest(const std::filesystem::path& checkpoint,
                   const std::function<void(nlohmann::ordered_json& manifest)>& change);

/// Changes a shard, and the manifest so that its length and all its checksums are right.
void edit_shard(const std::filesystem::path& checkpoint, int rank,
                const std::function<void(std::string& bytes)>& change);

}  // namespace zerolab::test
