// Checkpoints that are not what was saved: each is refused for what is wrong with it. Where the
// checksums would see it first, they are made right again, so that what lies behind them is tested.

#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <fstream>

#include "lab/temporary_folder.hpp"
#include "stages/base/read_file.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/run_job.hpp"
#include "tests/support/saved.hpp"
#include "tests/support/tampered.hpp"
#include "tests/support/thrown.hpp"

using namespace zerolab;
using namespace zerolab::test;

namespace fs = std::filesystem;

namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kTag = "global_step4";

/// In bf16, so that there are masters.
Training small_training(const ModelDescription& model, int stage) {
  Training training = training_of(model, stage);
  training.settings.dtype = Dtype::bf16;
  training.steps = 4;
  return training;
}

/// A folder with the checkpoints of steps 2 and 4.
class Saved {
 public:
  Saved(int ranks, int stage, const ModelDescription& model = tiny_mlp()) {
    run(ranks, saving(small_training(model, stage), folder_.path(), {2, 4}));
  }

  fs::path folder() const { return folder_.path(); }
  fs::path checkpoint() const { return folder() / kTag; }
  /// A copy of it that may be spoilt.
  void copy_to(const fs::path& other) const {
    fs::copy(folder(), other, fs::copy_options::recursive);
  }

 private:
  TemporaryFolder folder_;
};

using Harm = std::function<void(const fs::path& checkpoint)>;

struct Damage {
  std::string what;
  Code code;
  std::string file;    // that the message names, in the checkpoint's folder
  std::string reason;  // that it gives
  Harm harm;
};

int count(const std::string& text, const std::string& part) {
  int found = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

/// What a message lacks; empty if nothing.
std::string complaint(const Damage& damage, const Saved& saved) {
  const TemporaryFolder scratch;
  const fs::path folder = scratch.path() / "ck";
  saved.copy_to(folder);
  damage.harm(folder / kTag);
  const auto error = thrown_by([&] { read_everything(folder.string()); });
  if (!error) return "it is accepted";
  if (error->code() != damage.code) return fmt::format("another error: {}", error->what());
  const std::string& said = error->what_happened();
  if (!contains(said, (folder / kTag / damage.file).lexically_normal().string())) {
    return "the file is not named: " + said;
  }
  return contains(said, damage.reason) ? "" : "the reason is not given: " + said;
}

void check_all(const std::vector<Damage>& damages) {
  for (const auto& [ranks, stage] : {std::pair(3, 1), std::pair(4, 3)}) {
    const Saved saved(ranks, stage);
    REQUIRE_NOTHROW(read_everything(saved.folder().string()));
    for (const Damage& damage : damages) {
      INFO(damage.what << ", " << ranks << " ranks, stage " << stage);
      CHECK(complaint(damage, saved) == "");
    }
  }
}

Harm in_manifest(const std::function<void(Json&)>& change) {
  return [change](const fs::path& checkpoint) { edit_manifest(checkpoint, change); };
}

Harm as_manifest(const std::function<void(std::string&)>& change) {
  return [change](const fs::path& checkpoint) { edit(checkpoint / "manifest.json", change); };
}

/// Replaces a part of rank 1's header by another of the same length.
Harm in_header(const std::string& from, const std::string& to) {
  return [from, to](const fs::path& checkpoint) {
    edit_shard(checkpoint, 1,
               [&](std::string& bytes) { bytes.replace(bytes.find(from), from.size(), to); });
  };
}

const Code kDamaged = Code::checkpoint_damaged;
const Code kMissing = Code::checkpoint_missing;
const Code kMismatch = Code::checkpoint_mismatch;

}  // namespace

TEST_CASE("a shard that is missing, another's, cut or one too many is refused by name") {
  const std::string two = "rank2.safetensors";
  check_all({
      {"missing", kDamaged, two, "No such file",
       [&](const fs::path& checkpoint) { fs::remove(checkpoint / two); }},
      {"one too many", kDamaged, "rank4.safetensors", "is a shard too many",
       [&](const fs::path& checkpoint) {
         fs::copy(checkpoint / two, checkpoint / "rank4.safetensors");
       }},
      {"another rank's", kDamaged, two, "",  // its length or its checksum
       [&](const fs::path& checkpoint) {
         fs::copy(checkpoint / "rank1.safetensors", checkpoint / two,
                  fs::copy_options::overwrite_existing);
       }},
      {"of another step", kDamaged, two, "is not what was written: the checksum of bytes 0 to",
       [&](const fs::path& checkpoint) {
         fs::copy(checkpoint.parent_path() / "global_step2" / two, checkpoint / two,
                  fs::copy_options::overwrite_existing);
       }},
      {"of another step, the checksums right", kDamaged, two, "is of another rank or checkpoint",
       [&](const fs::path& checkpoint) {
         const auto other = read_file(checkpoint.parent_path() / "global_step2" / two);
         edit_shard(checkpoint, 2, [&](std::string& bytes) { bytes = other.value(); });
       }},
      {"cut by a byte", kDamaged, two, "the manifest says",
       [&](const fs::path& checkpoint) {
         fs::resize_file(checkpoint / two, fs::file_size(checkpoint / two) - 1);
       }},
      {"longer by a byte", kDamaged, two, "the manifest says",
       [&](const fs::path& checkpoint) {
         edit(checkpoint / two, [](std::string& bytes) { bytes += '\0'; });
       }},
      {"empty", kDamaged, two, "has 0 bytes",
       [&](const fs::path& checkpoint) { write_bytes(checkpoint / two, ""); }},
      {"a folder", kDamaged, two, "Is a directory",
       [&](const fs::path& checkpoint) {
         fs::remove(checkpoint / two);
         fs::create_directory(checkpoint / two);
       }},
      {"a link to nowhere", kDamaged, two, "No such file",
       [&](const fs::path& checkpoint) {
         fs::remove(checkpoint / two);
         fs::create_symlink("nowhere", checkpoint / two);
       }},
      {"the next rank's name", kDamaged, two, "No such file",
       [&](const fs::path& checkpoint) {
         fs::rename(checkpoint / two, checkpoint / "rank9.safetensors");
       }},
  });
}

TEST_CASE("a manifest that is none, or of another checkpoint, is refused by name") {
  const std::string file = "manifest.json";
  const Saved other(3, 1, tiny_transformer());
  check_all({
      {"missing", kMissing, "../latest", "names 'global_step4', which is no checkpoint there",
       [&](const fs::path& checkpoint) { fs::remove(checkpoint / file); }},
      {"empty", kDamaged, file, "there is no JSON in it",
       as_manifest([](std::string& text) { text.clear(); })},
      {"no JSON", kDamaged, file, "it is no JSON",
       as_manifest([](std::string& text) { text = "PK\x03\x04"; })},
      {"cut in half", kDamaged, file, "it is no JSON",
       as_manifest([](std::string& text) { text.resize(text.size() / 2); })},
      {"another JSON", kDamaged, file, "'format' is missing",
       as_manifest([](std::string& text) { text = "[1]"; })},
      {"deeply nested", kDamaged, file, "levels",
       as_manifest([](std::string& text) { text = std::string(1'000'000, '['); })},
      {"a key twice", kDamaged, file, "it has 'tag' twice",
       as_manifest([](std::string& text) { text.insert(1, "\"tag\": \"x\", "); })},
      {"changed by hand", kDamaged, file, "its checksum differs",
       as_manifest(
           [](std::string& text) { text.replace(text.find("\"stage\": "), 10, "\"stage\": 0"); })},
      {"a folder", kMissing, file, "it is no file",
       [&](const fs::path& checkpoint) {
         fs::remove(checkpoint / file);
         fs::create_directory(checkpoint / file);
       }},
      {"of another model", kDamaged, "rank0.safetensors", "the manifest says",
       [&](const fs::path& checkpoint) {
         fs::copy(other.checkpoint() / file, checkpoint / file,
                  fs::copy_options::overwrite_existing);
       }},
      {"in a folder of another name", kDamaged, "../global_step5/manifest.json",
       "is of 'global_step4', and its folder is called 'global_step5'",
       [&](const fs::path& checkpoint) {
         fs::rename(checkpoint, checkpoint.parent_path() / "global_step5");
         write_bytes(checkpoint.parent_path() / "latest", "global_step5");
       }},
      {"from the future", kMismatch, file, "the checkpoint has version 2, this zerolab reads",
       in_manifest([](Json& json) { json["version"] = 2; })},
      {"of another program", kDamaged, file, "it is no manifest of a checkpoint",
       in_manifest([](Json& json) { json["format"] = "parrot"; })},
  });
}

TEST_CASE("a manifest that contradicts itself is refused, whatever its checksum says") {
  const std::string file = "manifest.json";
  const auto shard = [](Json& json, int rank) -> Json& {
    return json["shards"][static_cast<std::size_t>(rank)];
  };
  check_all({
      {"elements in two shards", kDamaged, file, "are in more than one shard",
       in_manifest([&](Json& json) {
         Json& slice = shard(json, 1)["slices"][0];
         slice["begin"] = 0;
         slice["end"] = 1;
       })},
      {"elements in no shard", kDamaged, file, "which has",
       in_manifest([&](Json& json) { json["shards"].back()["slices"].erase(0); })},
      {"elements behind the end", kDamaged, file, "which has", in_manifest([&](Json& json) {
         Json& slice = json["shards"].back()["slices"].back();
         slice["end"] = slice["end"].get<Index>() + 1;
       })},
      {"a slice that ends before it begins", kDamaged, file, "ends before it begins",
       in_manifest([&](Json& json) { shard(json, 0)["slices"][0]["end"] = 0; })},
      {"a negative offset", kDamaged, file, "no whole number from 0",
       in_manifest([&](Json& json) { shard(json, 0)["slices"][0]["begin"] = -1; })},
      {"a slice twice in a shard", kDamaged, file, "comes twice", in_manifest([&](Json& json) {
         shard(json, 0)["slices"].push_back(shard(json, 0)["slices"][0]);
       })},
      {"a slice of another model", kDamaged, file, "is no parameter of the model",
       in_manifest([&](Json& json) { shard(json, 0)["slices"][0]["parameter"] = "wing"; })},
      {"a shape of more elements", kDamaged, file, "which has",
       in_manifest([](Json& json) { json["parameters"][0]["shape"][0] = 1'000'000'000'000; })},
      {"a shape beyond 64 bits", kDamaged, file, "is beyond all bounds",
       in_manifest([](Json& json) {
         json["parameters"][0]["shape"] = {Index{1} << 40, Index{1} << 40};
       })},
      {"shapes that are too much together", kDamaged, file, "is beyond all bounds",
       in_manifest([](Json& json) {
         for (Json& parameter : json["parameters"]) parameter["shape"] = {Index{1} << 55};
       })},
      {"a parameter twice", kDamaged, file, "comes twice",
       in_manifest([](Json& json) { json["parameters"].push_back(json["parameters"][0]); })},
      {"a shard that is shorter than what is in it", kDamaged, file, "and what is in it needs",
       in_manifest([&](Json& json) {
         shard(json, 1)["bytes"] = shard(json, 1)["bytes"].get<Index>() - 4;
       })},
      {"a shard of 2^60 bytes", kDamaged, file, "has not one checksum for every block",
       in_manifest([&](Json& json) { shard(json, 1)["bytes"] = Index{1} << 60; })},
      {"shards in another order", kDamaged, file, "not the file of rank 0",
       in_manifest([](Json& json) { std::swap(json["shards"][0], json["shards"][1]); })},
      {"a shard elsewhere", kDamaged, file, "not the file of rank 1",
       in_manifest([&](Json& json) { shard(json, 1)["file"] = "../../etc/passwd"; })},
      {"no shards", kDamaged, file, "world_size", in_manifest([](Json& json) {
         json["shards"] = Json::array();
         json["world_size"] = 0;
       })},
      {"another number of ranks", kDamaged, file, "is not the number of shards",
       in_manifest([](Json& json) { json["world_size"] = 7; })},
      {"an unknown type", kDamaged, file, "none of fp32, bf16, fp16",
       in_manifest([](Json& json) { json["dtype"] = "fp8"; })},
      {"a stage 4", kDamaged, file, "no whole number from 0 to 3",
       in_manifest([](Json& json) { json["stage"] = 4; })},
      {"a step that is no number", kDamaged, file, "no whole number",
       in_manifest([](Json& json) { json["steps"] = "four"; })},
      {"more updates than steps", kDamaged, file, "no whole number from 0 to 4",
       in_manifest([](Json& json) { json["updates"] = 5; })},
      {"moments of no optimizer", kDamaged, file, "has what no optimizer keeps",
       in_manifest([](Json& json) {
         json["moments"] = {"weights", "exp_avg"};
       })},
      {"a moment less", kDamaged, file, "has not one hash for",
       in_manifest([](Json& json) { json["moments"].erase(0); })},
      {"a checksum that is none", kDamaged, file, "no 16 hexadecimal digits",
       in_manifest([&](Json& json) { shard(json, 1)["xxh3"] = "0X12"; })},
      {"a scale of nothing", kDamaged, file, "is no scale",
       in_manifest([](Json& json) { json["loss_scaler"]["scale"] = 0; })},
      {"a tied name of nothing", kDamaged, file, "which is no second name of a parameter",
       in_manifest([](Json& json) {
         json["tied"] = {{"head.weight", "wing"}};
       })},
  });
}

TEST_CASE("a shard whose header is not what the manifest says is refused behind its checksums") {
  const std::string one = "rank1.safetensors";
  const auto with_length = [](std::uint64_t length) -> Harm {
    return [length](const fs::path& checkpoint) {
      edit_shard(checkpoint, 1, [length](std::string& bytes) {
        bytes.replace(0, sizeof length, reinterpret_cast<const char*>(&length), sizeof length);
      });
    };
  };
  check_all({
      {"2^60 bytes of header", kDamaged, one, "its header claims 1152921504606846976 bytes",
       with_length(std::uint64_t{1} << 60)},
      {"2^64 - 1 bytes of header", kDamaged, one, "its header claims 18446744073709551615 bytes",
       with_length(~std::uint64_t{0})},
      {"no header", kDamaged, one, "the header is no JSON", with_length(0)},
      {"an unknown dtype", kDamaged, one, "has the unknown dtype 'F33'", in_header("F32", "F33")},
      {"another state", kDamaged, one, "where the manifest has 'master/",
       in_header("master/", "mastex/")},
      {"another rank", kDamaged, one, "is of another rank or checkpoint",
       in_header("\"rank\":\"1\"", "\"rank\":\"0\"")},
      {"no tensors at all", kDamaged, one, "bytes, and",
       [](const fs::path& checkpoint) {
         edit_shard(checkpoint, 1, [](std::string& bytes) {
           const std::size_t end = bytes.rfind('}');
           bytes.replace(8, end - 7, "{}" + std::string(end - 9, ' '));
         });
       }},
  });
}

TEST_CASE("one flipped bit anywhere in a shard, a manifest or latest is refused") {
  for (const auto& [ranks, stage] : {std::pair(3, 2), std::pair(4, 0)}) {
    const Saved saved(ranks, stage);
    for (const fs::path name :
         {"latest", "global_step4/manifest.json", "global_step4/rank0.safetensors",
          "global_step4/rank2.safetensors"}) {
      const fs::path file = saved.folder() / name;
      const std::string whole = read_file(file).value();
      const auto bits = static_cast<Index>(whole.size()) * 8;
      const Index stride = name == "latest" ? 1 : 173;  // each bit of a byte in turn
      int accepted = 0, other_status = 0;
      for (Index bit = 0; bit < bits; bit += stride) {
        flip_bit(file, bit);
        const auto error = thrown_by([&] { read_everything(saved.folder().string()); });
        accepted += error ? 0 : 1;
        other_status += error && error->exit_status() != 6 ? 1 : 0;
        flip_bit(file, bit);
      }
      INFO(name << ", " << ranks << " ranks");
      REQUIRE(read_file(file) == whole);
      CHECK(accepted == 0);
      CHECK(other_status == 0);
    }
  }
}

namespace {

/// While it lives, memory that is taken beyond so many bytes is not given. Address sanitizers need
/// more address space than any limit leaves them; they refuse huge allocations themselves.
class MemoryLimit {
 public:
  explicit MemoryLimit(Index more) {
    getrlimit(RLIMIT_AS, &before_);
    rlimit limit = before_;
    limit.rlim_cur = static_cast<rlim_t>(address_space() + more);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    setrlimit(RLIMIT_AS, &limit);
#endif
  }
  ~MemoryLimit() { setrlimit(RLIMIT_AS, &before_); }
  MemoryLimit(const MemoryLimit&) = delete;
  MemoryLimit& operator=(const MemoryLimit&) = delete;

 private:
  static Index address_space() {
    Index pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    return pages * sysconf(_SC_PAGESIZE);
  }

  rlimit before_ = {};
};

/// While it lives, this process is a user who owns nothing.
class Nobody {
 public:
  Nobody() {
    if (root_ && seteuid(65534) != 0) FAIL("cannot become another user");
  }
  ~Nobody() {
    if (root_ && seteuid(0) != 0) std::abort();
  }
  Nobody(const Nobody&) = delete;
  Nobody& operator=(const Nobody&) = delete;

 private:
  bool root_ = geteuid() == 0;
};

}  // namespace

TEST_CASE("no file makes a checkpoint's reader take more memory than a few blocks") {
  const Index terabyte = Index{1} << 40;
  const Saved saved(3, 3);
  const auto sparse = [terabyte](const fs::path& file) {
    fs::resize_file(file, static_cast<std::uintmax_t>(terabyte));
  };
  const std::vector<Damage> damages{
      {"a manifest of a terabyte", kDamaged, "manifest.json", "no such file has more than",
       [&](const fs::path& checkpoint) { sparse(checkpoint / "manifest.json"); }},
      {"latest of a terabyte", kMissing, "../latest", "no such file has more than",
       [&](const fs::path& checkpoint) { sparse(checkpoint.parent_path() / "latest"); }},
      {"a shard of a terabyte", kDamaged, "rank1.safetensors", "has 1099511627776 bytes",
       [&](const fs::path& checkpoint) { sparse(checkpoint / "rank1.safetensors"); }},
      {"a header of 2^60 bytes", kDamaged, "rank1.safetensors", "its header claims",
       [](const fs::path& checkpoint) {
         edit_shard(checkpoint, 1,
                    [](std::string& bytes) { bytes.replace(0, 8, "\0\0\0\0\0\0\0\x10", 8); });
       }},
      {"a parameter of 2^55 elements", kDamaged, "manifest.json", "which has",
       in_manifest([](Json& json) { json["parameters"][0]["shape"] = {Index{1} << 55}; })}};
  const MemoryLimit limit(Index{48} << 20);
  for (const Damage& damage : damages) {
    INFO(damage.what);
    CHECK(complaint(damage, saved) == "");
  }
}

TEST_CASE("a checkpoint that may not be read is refused by name") {
  const Saved saved(3, 1);
  fs::permissions(saved.folder(),
                  fs::perms::owner_all | fs::perms::others_exec | fs::perms::others_read);
  for (const auto& [name, code] :
       {std::pair("latest", kMissing), std::pair("global_step4/manifest.json", kMissing),
        std::pair("global_step4/rank1.safetensors", kMissing),
        std::pair("global_step4", kMissing)}) {
    const fs::path file = saved.folder() / name;
    const fs::perms before = fs::status(file).permissions();
    fs::permissions(file, fs::perms::none);
    const auto error = [&] {
      const Nobody nobody;
      return thrown_by([&] { read_everything(saved.folder().string()); });
    }();
    fs::permissions(file, before);
    INFO(name);
    REQUIRE(error);
    INFO(error->what());
    CHECK(error->code() == code);
    CHECK(contains(error->what(), saved.folder().string()));
    CHECK(contains(error->what(), "Permission denied"));
  }
}

TEST_CASE("a pipe in the place of a file is refused, and nobody waits for it") {
  for (const auto& [name, code] :
       {std::pair("latest", kMissing), std::pair("global_step4/manifest.json", kMissing),
        std::pair("global_step4/rank1.safetensors", kDamaged)}) {
    const Saved saved(3, 1);
    const fs::path file = saved.folder() / name;
    fs::remove(file);
    REQUIRE(mkfifo(file.c_str(), 0666) == 0);
    const auto error = thrown_by([&] { read_everything(saved.folder().string()); });
    INFO(name);
    REQUIRE(error);
    CHECK(error->code() == code);
    CHECK(contains(error->what(), name));
  }
}

TEST_CASE("what one rank finds damaged ends all ranks with that rank's error, told once") {
  for (const auto& [ranks, stage] : {std::pair(3, 3), std::pair(4, 1)}) {
    const Saved saved(ranks, stage);
    // The last block of the last shard: its own rank reads it, and no other.
    const fs::path file = saved.checkpoint() / fmt::format("rank{}.safetensors", ranks - 1);
    flip_bit(file, static_cast<Index>(fs::file_size(file)) * 8 - 3);
    const Training training = resuming(small_training(tiny_mlp(), stage), saved.folder().string());
    const JobEnd end = run_job(ranks, [&](Communicator& communicator) {
      Recorder recorder(communicator.rank());
      train(communicator, recorder, training);
    });
    INFO(end.message);
    CHECK(end.status == 6);
    CHECK(count(end.message, "ZL603") == 1);
    CHECK(contains(end.message, file.string() + " is not what was written: the checksum of bytes"));
    CHECK(contains(end.message, saved.folder().string() + ":global_step2"));  // the way out
  }
}

TEST_CASE(
    "a checkpoint of another model or other shapes is refused on every rank before any is loaded") {
  for (const int stage : {0, 1, 2, 3}) {
    const Saved saved(3, stage);
    ModelDescription wider = tiny_mlp();
    wider.hidden_sizes.at(0) += 1;
    for (const auto& [model, reason] : {std::pair(wider, "the model has ["),
                                        std::pair(tiny_transformer(), "which the model has")}) {
      const Training training = resuming(small_training(model, stage), saved.folder().string());
      const auto error = thrown_by([&] { run(3, training); });
      INFO("stage " << stage);
      REQUIRE(error);
      INFO(error->what());
      CHECK(error->code() == kMismatch);
      CHECK(contains(error->what(), saved.checkpoint().string()));
      CHECK(contains(error->what(), reason));
    }
  }
}
