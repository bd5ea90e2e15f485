// A save in which one rank fails: all ranks get the same error, and what is half written goes.

#include <fmt/format.h>
#include <sys/resource.h>

#include <csignal>

#include "lab/temporary_folder.hpp"
#include "stages/base/read_file.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/names_in.hpp"
#include "tests/support/run_ranks.hpp"
#include "tests/support/saved.hpp"
#include "tests/support/tampered.hpp"
#include "tests/support/thrown.hpp"

using namespace zerolab;
using namespace zerolab::test;

namespace fs = std::filesystem;

namespace {

/// While it lives, no file of this process may be longer.
class FileLimit {
 public:
  explicit FileLimit(std::uintmax_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    getrlimit(RLIMIT_FSIZE, &before_);
    rlimit limit = before_;
    limit.rlim_cur = bytes;
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileLimit() {
    setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }
  FileLimit(const FileLimit&) = delete;
  FileLimit& operator=(const FileLimit&) = delete;

 private:
  void (*handler_)(int);
  rlimit before_ = {};
};

/// What each rank's training threw, by rank.
std::vector<std::string> errors_of(int ranks, const Training& training) {
  return run_ranks(ranks, [&](Communicator& communicator) -> std::string {
    const auto error = thrown_by([&] {
      Recorder recorder(communicator.rank());
      train(communicator, recorder, training);
    });
    return error ? error->what() : "";
  });
}

/// The rank whose shard is the longest, the length of the next one, and how many are that long.
struct Longest {
  int rank = 0, count = 0;
  std::uintmax_t bytes = 0, next = 0;
};

Longest longest_shard(const fs::path& checkpoint, int ranks) {
  Longest longest;
  for (int rank = 0; rank < ranks; ++rank) {
    const auto bytes = fs::file_size(checkpoint / fmt::format("rank{}.safetensors", rank));
    if (bytes > longest.bytes) {
      longest = {rank, 0, bytes, longest.bytes};
    } else if (bytes < longest.bytes) {
      longest.next = std::max(longest.next, bytes);
    }
    longest.count += bytes == longest.bytes ? 1 : 0;
  }
  return longest;
}

}  // namespace

TEST_CASE("one rank's file cannot be written: every rank throws that, and nothing is left of it") {
  int alone = 0;
  for (const int ranks : {3, 4}) {
    for (const int stage : {0, 1, 2, 3}) {
      const TemporaryFolder folder;
      Training training = saving(training_of(tiny_mlp(), stage), folder.path(), {2, 4});
      training.steps = 2;
      run(ranks, training);
      const Longest longest = longest_shard(folder.path() / "global_step2", ranks);
      training.steps = 4;
      const std::vector<std::string> errors = [&] {
        const FileLimit limit(longest.bytes - 1);
        return errors_of(ranks, resuming(training, folder.path().string()));
      }();
      INFO(ranks << " ranks, stage " << stage);
      INFO(errors[0]);
      CHECK(contains(errors[0], "ZL601"));
      CHECK(contains(errors[0], fmt::format("/.global_step4.partial/rank{}.safetensors cannot be "
                                            "written: File too large",
                                            longest.rank)));
      for (const std::string& error : errors) CHECK(error == errors[0]);
      CHECK(names_in(folder.path()) == std::vector<std::string>{"global_step2", "latest"});
      CHECK(read_file(folder.path() / "latest") == "global_step2\n");
      CHECK_NOTHROW(read_everything(folder.path().string()));
      alone += longest.count == 1 && longest.rank > 0 ? 1 : 0;
    }
  }
  CHECK(alone > 0);  // in some it was one rank alone, and not rank 0
}

TEST_CASE("of saves within the same tick of the disk's clock the latest is kept") {
  const TemporaryFolder folder;
  Training training = training_of(tiny_mlp(), 1);
  training.steps = 10;
  training.after_step = [&folder](Runtime& runtime, Engine& engine) {
    const Index step = engine.steps_done();
    if (step < 9) return;
    if (step == 10 && runtime.rank() == 0) {  // as if written later, by a clock that was ahead
      const auto now = fs::file_time_type::clock::now();
      fs::last_write_time(folder.path() / "global_step9/manifest.json",
                          now + std::chrono::hours(1));
    }
    save_checkpoint(runtime, engine, {.folder = folder.path(), .keep = 1});
  };
  run(3, training);
  CHECK(names_in(folder.path()) == std::vector<std::string>{"global_step10", "latest"});
  CHECK_NOTHROW(read_everything(folder.path().string()));
}
