// Kinds d and e of docs/cases.md: checkpoints that are not there, not whole, or not one.

#include <fmt/format.h>

#include <chrono>
#include <stdexcept>

#include "lab/failures/wrappers/stage_wrapper.hpp"
#include "lab/temporary_folder.hpp"
#include "stages/base/read_file.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/names_in.hpp"
#include "tests/support/run_job.hpp"
#include "tests/support/saved.hpp"
#include "tests/support/tampered.hpp"
#include "tests/support/thrown.hpp"

using namespace zerolab;
using namespace zerolab::test;

namespace fs = std::filesystem;

namespace {

constexpr int kRanks = 4;

/// A folder with the checkpoints of steps 2 and 4.
class Saved {
 public:
  explicit Saved(int stage) : stage_(stage) {
    Training training = saving(training_of(tiny_mlp(), stage), folder_.path(), {2, 4});
    training.steps = 4;
    run(kRanks, training);
  }

  fs::path path() const { return folder_.path(); }
  fs::path shard(Index step, int rank) const {
    return path() / fmt::format("global_step{}/rank{}.safetensors", step, rank);
  }

  /// What resuming from it says, on all ranks together; "" if it goes on.
  JobEnd resume(const std::string& name) const {
    const Training training = resuming(training_of(tiny_mlp(), stage_), name);
    return run_job(kRanks, [&](Communicator& communicator) {
      Recorder recorder(communicator.rank());
      train(communicator, recorder, training);
    });
  }
  JobEnd resume() const { return resume(path().string()); }

 private:
  int stage_;
  TemporaryFolder folder_;
};

void check_refused(const JobEnd& end, const std::string& code,
                   const std::vector<std::string>& parts) {
  INFO(end.message);
  CHECK(end.status == 6);
  CHECK(end.message.rfind(code, 0) == 0);
  CHECK(end.message.find("ZL6", 1) == std::string::npos);  // told once
  for (const std::string& part : parts) CHECK(contains(end.message, part));
}

/// Throws in a save of step 4, when a rank is asked for what it owns for the n-th time.
class ThrowsInSave : public StageWrapper {
 public:
  ThrowsInSave(std::unique_ptr<Stage> stage, Runtime& runtime, int rank, int at)
      : StageWrapper(std::move(stage), runtime), rank_(rank), at_(at) {}

  std::vector<OwnedSlice> owned() override {
    const Recorder& recorder = runtime().recorder;
    const bool in_save = recorder.phase() == Phase::save && recorder.step() == 4;
    if (in_save && recorder.rank() == rank_ && asked_++ == at_) {
      throw std::runtime_error("out of luck");
    }
    return StageWrapper::owned();
  }

 private:
  int rank_, at_;
  int asked_ = 0;
};

}  // namespace

TEST_CASE(
    "B58: a rank that throws inside of a save ends the run, and no checkpoint is marked valid",
    "[cases]") {
  for (const int stage : {0, 1, 2, 3}) {
    int thrown = 0;
    for (bool again = true; again; ++thrown) {
      const TemporaryFolder folder;
      Training training = saving(training_of(tiny_mlp(), stage), folder.path(), {2, 4});
      training = with_stage<ThrowsInSave>(training, 2, thrown);
      training.steps = 4;
      const auto start = std::chrono::steady_clock::now();
      const JobEnd end = run_job(kRanks, [&](Communicator& communicator) {
        Recorder recorder(communicator.rank());
        train(communicator, recorder, training);
      });
      INFO("stage " << stage << ", asked " << thrown << " times\n" << end.message);
      again = end.status != 0;
      if (!again) break;  // it was not asked so often: this save came through
      CHECK(end.status == 1);
      CHECK(contains(end.message, "out of luck"));
      CHECK(end.message.find("ZL", 2) == std::string::npos);
      CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(2));
      CHECK(names_in(folder.path()) == std::vector<std::string>{"global_step2", "latest"});
      CHECK(read_file(folder.path() / "latest") == "global_step2\n");
      CHECK_NOTHROW(read_everything(folder.path().string()));
    }
    CHECK(thrown >= 2);  // for the hash, and for the file
  }
}

TEST_CASE("B66: without a latest checkpoint resuming is an error that lists what is there",
          "[cases]") {
  const Saved saved(3);
  const std::string there = saved.path().string() + " has global_step2, global_step4";
  const fs::path latest = saved.path() / "latest";
  SECTION("an empty folder") {
    const TemporaryFolder empty;
    check_refused(saved.resume(empty.path().string()), "ZL602",
                  {"latest cannot be read", empty.path().string() + " has no checkpoint"});
  }
  SECTION("no folder") {
    check_refused(saved.resume("/nowhere/ck"), "ZL602", {"there is no folder /nowhere/ck"});
  }
  SECTION("shards and no pointer") {
    fs::remove(latest);
    check_refused(saved.resume(), "ZL602", {latest.string() + " cannot be read", there});
  }
  SECTION("a pointer to nothing") {
    write_bytes(latest, "global_step9\n");
    check_refused(saved.resume(), "ZL602",
                  {latest.string() + " names 'global_step9', which is no checkpoint there", there,
                   saved.path().string() + ":global_step4"});
  }
  SECTION("a pointer out of the folder, an empty one, bytes") {
    for (const std::string text : {"../global_step2", ".", "", " \n", "\x01\xFF"}) {
      write_bytes(latest, text);
      check_refused(saved.resume(), "ZL602", {latest.string(), there});
    }
  }
}

TEST_CASE("B66: blanks and newlines around the name in latest do no harm", "[cases]") {
  const Saved saved(1);
  for (const std::string text : {"global_step4", "global_step4\n\n", "  global_step4 \r\n"}) {
    write_bytes(saved.path() / "latest", text);
    const JobEnd end = saved.resume();
    INFO(end.message);
    CHECK(end.status == 0);
  }
}

TEST_CASE("B68: a missing, doubled, foreign or additional shard is named before anything changes",
          "[cases]") {
  for (const int stage : {1, 3}) {
    INFO("stage " << stage);
    const Saved saved(stage);
    const fs::path two = saved.shard(4, 2);
    const std::string whole = read_file(two).value();
    const auto refused = [&](const std::string& file, const std::string& reason) {
      check_refused(saved.resume(), "ZL603",
                    {file + " " + reason, saved.path().string() + ":global_step2"});
      write_bytes(two, whole);
    };
    fs::remove(two);
    refused(two.string(), "cannot be read: No such file");
    write_bytes(two, read_file(saved.shard(4, 1)).value());
    refused(two.string(), "");
    write_bytes(two, read_file(saved.shard(2, 2)).value());
    refused(two.string(), "is not what was written");
    const fs::path four = saved.shard(4, 4);
    write_bytes(four, whole);
    refused(four.string(), "is a shard too many: the manifest has 4 ranks");
    fs::remove(four);
    CHECK(saved.resume().status == 0);
  }
}

TEST_CASE("B69: a shard that is cut or has one byte changed is told with sizes or checksum",
          "[cases]") {
  for (const int stage : {0, 2}) {
    INFO("stage " << stage);
    const Saved saved(stage);
    const fs::path three = saved.shard(4, 3);
    const std::string whole = read_file(three).value();
    const std::string earlier = saved.path().string() + ":global_step2";
    for (const std::size_t bytes : {whole.size() / 2, whole.size() - 1}) {
      write_bytes(three, whole.substr(0, bytes));
      check_refused(saved.resume(), "ZL603",
                    {fmt::format("{} has {} bytes, the manifest says {}", three.string(), bytes,
                                 whole.size()),
                     earlier});
    }
    for (const std::size_t at : {std::size_t{0}, whole.size() / 2, whole.size() - 1}) {
      write_bytes(three, whole);
      flip_bit(three, static_cast<Index>(at) * 8 + 5);
      check_refused(saved.resume(), "ZL603",
                    {three.string() + " is not what was written: the checksum of bytes", earlier});
    }
    CHECK(saved.resume(earlier).status == 0);
  }
}
