#include "tests/support/sparse_checkpoint.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>

namespace zerolab::test {
namespace fs = std::filesystem;

void write_sparse_checkpoint(const fs::path& folder, const std::vector<SavedParameter>& parameters,
                             int ranks) {
  Manifest manifest;
  manifest.tag = "large";
  manifest.stage = 3;
  manifest.hashes = {0};
  manifest.parameters = parameters;
  for (int rank = 0; rank < ranks; ++rank) {
    Shard shard{fmt::format("rank{}.safetensors", rank), {}, {}};
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      const Index all = numel(parameters[i].shape);
      const Index share = ceil_div(all, Index{ranks});
      const Range range{std::min(rank * share, all), std::min((rank + 1) * share, all)};
      if (range.size() > 0) shard.slices.push_back({i, range});
    }
    manifest.shards.push_back(std::move(shard));
  }
  fs::create_directories(folder / manifest.tag);
  for (std::size_t rank = 0; rank < manifest.shards.size(); ++rank) {
    const fs::path file = folder / manifest.tag / manifest.shards[rank].file;
    const SafetensorsWriter header = manifest.shard_header(rank);
    std::ofstream(file, std::ios::binary) << header.text();
    fs::resize_file(
        file, fs::file_size(file) + static_cast<std::uintmax_t>(header.header().data_bytes()));
    manifest.shards[rank].digest = InputFile(file.string()).digest([](Index) {});
  }
  write_durably(folder / manifest.tag / "manifest.json", to_text(manifest));
  write_durably(folder / "latest", manifest.tag);
}

}  // namespace zerolab::test
