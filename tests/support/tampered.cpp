#include "tests/support/tampered.hpp"

#include <fmt/format.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <fstream>

#include "stages/base/read_file.hpp"
#include "stages/checkpoint/state_reader.hpp"

namespace zerolab::test {
namespace {

constexpr std::size_t kBlock = 1 << 20;  // docs/checkpoints.md

std::string checksum(std::string_view bytes) {
  return fmt::format("{:016x}", XXH3_64bits(bytes.data(), bytes.size()));
}

}  // namespace

void read_everything(const std::string& name) {
  const Checkpoint checkpoint = Checkpoint::open(name);
  const Manifest& manifest = checkpoint.manifest();
  StateReader reader(checkpoint);
  for (const SavedParameter& parameter : manifest.parameters) {
    for (const std::string& state : manifest.states()) {
      if (!manifest.has(state, parameter)) continue;
      reader.read(parameter.name, state, {0, numel(parameter.shape)},
                  [](Range, Dtype, std::span<const std::byte>) {});
    }
  }
}

void write_bytes(const std::filesystem::path& file, const std::string& bytes) {
  std::ofstream(file, std::ios::binary) << bytes;
}

void edit(const std::filesystem::path& file, const std::function<void(std::string&)>& change) {
  std::string bytes = read_file(file).value();
  change(bytes);
  write_bytes(file, bytes);
}

void flip_bit(const std::filesystem::path& file, Index bit) {
  std::fstream stream(file, std::ios::binary | std::ios::in | std::ios::out);
  stream.seekg(bit / 8);
  const int byte = stream.get() ^ (1 << (bit % 8));
  stream.seekp(bit / 8);
  stream.put(static_cast<char>(byte));
}

void edit_manifest(const std::filesystem::path& checkpoint,
                   const std::function<void(nlohmann::ordered_json&)>& change) {
  edit(checkpoint / "manifest.json", [&change](std::string& text) {
    auto json = nlohmann::ordered_json::parse(text);
    change(json);
    json.erase("xxh3");
    json["xxh3"] = checksum(json.dump());
    // The checksum's own entry is the last, so what is in front of it is what it is of.
    text = json.dump();
  });
}

void edit_shard(const std::filesystem::path& checkpoint, int rank,
                const std::function<void(std::string&)>& change) {
  const std::filesystem::path file = checkpoint / fmt::format("rank{}.safetensors", rank);
  edit(file, change);
  const std::string bytes = read_file(file).value();
  edit_manifest(checkpoint, [&bytes, rank](nlohmann::ordered_json& manifest) {
    std::string blocks;
    for (std::size_t at = 0; at < bytes.size(); at += kBlock) {
      blocks += checksum(std::string_view(bytes).substr(at, kBlock));
    }
    nlohmann::ordered_json& shard = manifest["shards"][static_cast<std::size_t>(rank)];
    shard["bytes"] = bytes.size();
    shard["xxh3"] = checksum(bytes);
    shard["blocks"] = blocks;
  });
}

}  // namespace zerolab::test
