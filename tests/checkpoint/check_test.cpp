#include "stages/checkpoint/check.hpp"

#include <fmt/format.h>

#include <fstream>

#include "lab/temporary_folder.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/saved.hpp"
#include "tests/support/sparse_checkpoint.hpp"
#include "tests/support/thrown.hpp"

using namespace zerolab;
using namespace zerolab::test;

namespace {

namespace fs = std::filesystem;

void overwrite(const fs::path& file, Index at) {
  std::fstream out(file, std::ios::binary | std::ios::in | std::ios::out);
  out.seekp(at);
  out.put('\x55');
}

std::vector<std::string> problems_in(const fs::path& folder) {
  return check_checkpoint(Checkpoint::open_manifest(folder.string())).problems;
}

}  // namespace

TEST_CASE("a checkpoint that was saved has no problem, in any stage") {
  for (const int stage : {0, 1, 2, 3}) {
    const TemporaryFolder folder;
    Training training = training_of_odd_sizes(stage);
    training.steps = 1;
    saved_states(4, training, folder.path());
    const Checkpoint checkpoint = Checkpoint::open(folder.path().string());
    Index shown = 0;
    const CheckReport report = check_checkpoint(checkpoint, [&](Index done, Index all) {
      shown = done;
      if (all != checkpoint.bytes()) shown = -1;
    });
    INFO("stage " << stage);
    CHECK(report.problems.empty());
    CHECK(report.files == 4);
    CHECK(report.bytes == checkpoint.bytes());
    CHECK(shown == checkpoint.bytes());
    Index tensors = 0;
    for (std::size_t rank = 0; rank < 4; ++rank) {
      tensors +=
          static_cast<Index>(checkpoint.manifest().shard_header(rank).header().tensors.size());
    }
    CHECK(report.tensors == tensors);
  }
}

TEST_CASE("the check of a checkpoint goes on behind what is wrong, and tells all of it once") {
  const TemporaryFolder folder;
  write_sparse_checkpoint(folder.path(), {{"w", {1000, 7000}, true}}, 7);  // 4 MB each
  const fs::path large = folder.path() / "large";
  const auto shard = [&](int rank) { return large / fmt::format("rank{}.safetensors", rank); };
  REQUIRE(problems_in(folder.path()).empty());

  fs::remove(shard(0));
  fs::resize_file(shard(1), fs::file_size(shard(1)) - 1);
  overwrite(shard(2), 3 * kBlockBytes);  // two neighbours and another one
  overwrite(shard(2), kBlockBytes);
  overwrite(shard(2), 2 * kBlockBytes - 1);
  overwrite(shard(2), 0);
  overwrite(shard(3), 5);  // in what says how long the header is
  fs::copy_file(shard(5), shard(4), fs::copy_options::overwrite_existing);
  fs::copy_file(shard(5), shard(7));
  std::vector<std::string> files;
  for (const std::string& problem : problems_in(folder.path())) {
    files.push_back(problem.substr(problem.find("rank"), 5));
  }
  CHECK(files ==
        std::vector<std::string>{"rank0", "rank1", "rank7", "rank2", "rank2", "rank3", "rank4"});
  const std::vector<std::string> problems = problems_in(folder.path());
  CHECK(contains(problems[3], "bytes 0 to 2097152 differs"));
  CHECK(contains(problems[4], fmt::format("bytes 3145728 to {} differs", fs::file_size(shard(2)))));
}

TEST_CASE("a check finds what no checksum of a block can: another header, another whole") {
  const TemporaryFolder folder;
  write_sparse_checkpoint(folder.path(), {{"w", {5}, true}, {"v", {5}, true}}, 3);
  const Manifest right = Checkpoint::open_manifest(folder.path().string()).manifest();
  const auto problems_with = [&](const std::function<void(Manifest&)>& change) {
    Manifest manifest = right;
    change(manifest);
    write_durably(folder.path() / "large" / kManifest, to_text(manifest));
    return problems_in(folder.path());
  };
  CHECK(problems_with([](Manifest&) {}).empty());
  const auto header = problems_with([](Manifest& manifest) { manifest.parameters[1].name = "u"; });
  REQUIRE(header.size() == 3);
  CHECK(
      contains(header[2], "rank2.safetensors has 'weights/v', where the manifest has 'weights/u'"));
  const auto whole = problems_with([](Manifest& manifest) { ++manifest.shards[1].digest.xxh3; });
  REQUIRE(whole.size() == 1);
  CHECK(
      contains(whole[0], "rank1.safetensors has the checksum of every block, and not that of all"));
}
