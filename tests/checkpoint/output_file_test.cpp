#include "stages/checkpoint/file.hpp"

#include <cstring>

#include "lab/temporary_folder.hpp"
#include "stages/base/read_file.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/saved.hpp"

using namespace zerolab;
using namespace zerolab::test;

namespace {

std::string odd_text(std::size_t size) {
  std::string text(size, '\0');
  std::uint32_t value = 1;
  for (char& c : text) c = static_cast<char>((value = value * 1664525 + 1013904223) >> 24);
  return text;
}

}  // namespace

TEST_CASE("a file and its digest are the same in whatever parts it is written") {
  for (const std::size_t size : {std::size_t{0}, std::size_t{7}, std::size_t{kBlockBytes},
                                 std::size_t{kBlockBytes} * 2 + 12'345}) {
    const std::string text = odd_text(size);
    FileDigest expected{static_cast<Index>(size), xxh3(text), {}};
    for (std::size_t begin = 0; begin < size; begin += kBlockBytes) {
      expected.blocks.push_back(xxh3(std::string_view(text).substr(begin, kBlockBytes)));
    }
    const TemporaryFolder folder;
    const std::filesystem::path path = folder.path() / "file";
    for (const std::size_t part : {std::size_t{9'973}, std::size_t{1'500'001}}) {
      OutputFile copied(path, 0);
      for (std::size_t begin = 0; begin < size; begin += part) {
        copied.write(std::string_view(text).substr(begin, part));
      }
      CHECK(copied.close() == expected);
      CHECK((read_file(path) == text));

      OutputFile filled(path, 0);
      for (std::size_t begin = 0; begin < size; begin += part) {
        const std::string_view some = std::string_view(text).substr(begin, part);
        filled.write(static_cast<Index>(some.size()), [&](Index done, std::span<std::byte> out) {
          std::memcpy(out.data(), some.data() + done, out.size());
        });
      }
      CHECK(filled.close() == expected);
      CHECK((read_file(path) == text));
    }
  }
}

TEST_CASE("states of several blocks are loaded as they were saved") {
  ModelDescription model = tiny_mlp();
  model.hidden_sizes = {701, 703};
  Training training = training_of(model, 3);
  training.settings.dtype = Dtype::bf16;
  training.settings.micro_batch = 1;
  training.steps = 1;
  const TemporaryFolder folder;
  run(3, saving(training, folder.path(), {1}));
  const Checkpoint checkpoint = Checkpoint::open(folder.path().string());
  for (const Shard& shard : checkpoint.manifest().shards) REQUIRE(shard.digest.blocks.size() > 2);
  training.settings.zero.stage = 2;
  training.steps = 2;
  // The hashes of all states are compared, or loading throws.
  CHECK(run(2, resuming(training, folder.path().string()))[0].steps.size() == 1);
}
