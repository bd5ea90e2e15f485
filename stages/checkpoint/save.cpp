#include "stages/checkpoint/save.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "stages/base/error.hpp"
#include "stages/checkpoint/checkpoint.hpp"
#include "stages/checkpoint/tied.hpp"
#include "stages/checkpoint/together.hpp"
#include "stages/checkpoint/write_values.hpp"

namespace zerolab {
namespace fs = std::filesystem;
namespace {

using Clock = std::chrono::steady_clock;

/// Takes a checkpoint away that does not come to its end.
class Unfinished {
 public:
  Unfinished(fs::path folder, bool mine) : folder_(std::move(folder)), mine_(mine) {}
  ~Unfinished() {
    std::error_code ignored;
    if (mine_) fs::remove_all(folder_, ignored);
  }
  Unfinished(const Unfinished&) = delete;
  Unfinished& operator=(const Unfinished&) = delete;
  void finished() { mine_ = false; }

 private:
  fs::path folder_;
  bool mine_;
};

// What an earlier run was writing, or taking away, when it was killed.
void remove_leftovers(const fs::path& folder) {
  std::error_code failed;
  std::vector<fs::path> leftovers;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, failed)) {
    const std::string name = entry.path().filename().string();
    if (name.front() == '.' && name.ends_with(".partial")) leftovers.push_back(entry.path());
  }
  for (const fs::path& path : leftovers) fs::remove_all(path, failed);
}

// A save replaces a checkpoint of the same tag, and nothing else.
void refuse_other_things(const fs::path& path) {
  std::error_code failed;
  if (fs::exists(path / kManifest, failed) || !fs::exists(path, failed)) return;
  if (fs::is_directory(path, failed) && fs::is_empty(path, failed)) return;
  throw Error(
      Code::checkpoint_write,
      fmt::format("{} cannot be written: it is there, and no checkpoint of zerolab", path.string()),
      "move it away, or save into another folder");
}

// One after the other the oldest; the folder first loses its name, so that none is half there.
// Whatever the clock says, the newest stays.
std::string remove_beyond(const fs::path& folder, Index keep, const std::string& newest) {
  if (keep == 0) return {};
  std::vector<std::string> tags = tags_in(folder);
  std::erase(tags, newest);
  const auto count = static_cast<Index>(tags.size()) + 1;
  std::error_code failed;
  for (Index i = 0; i < count - keep && !failed; ++i) {
    const std::string& tag = tags[static_cast<std::size_t>(i)];
    fs::rename(folder / tag, partial_folder(folder, tag), failed);
    if (!failed) fs::remove_all(partial_folder(folder, tag), failed);
  }
  if (!failed) return {};
  return fmt::format("an old checkpoint in {} cannot be removed: {}", folder.string(),
                     failed.message());
}

/// One save on one rank.
class Save {
 public:
  Save(Runtime& runtime, Engine& engine, const SaveTo& to)
      : runtime_(runtime), engine_(engine), to_(to) {}

  SaveReport run() {
    const Clock::time_point start = Clock::now();
    describe();
    agree_on_tag();
    manifest_.hashes = engine_.state_hashes();
    partial_ = partial_folder(to_.folder, manifest_.tag);
    Unfinished unfinished(partial_, writes_first());
    shared([this] { return make_room(); });
    for (const std::string& text : shared([this] { return write_shard(); })) add_shard(text);
    shared([this] { return publish(); });
    unfinished.finished();
    report_.tag = manifest_.tag;
    for (const Shard& shard : manifest_.shards) report_.bytes += shard.digest.bytes;
    report_.seconds = seconds_since(start);
    record();
    return report_;
  }

 private:
  bool writes_first() const { return runtime_.rank() == 0; }

  std::vector<std::string> shared(const std::function<std::string()>& part) {
    double mine = 0;
    const Clock::time_point start = Clock::now();
    auto results = together(runtime_.comm, "checkpoint", [&] {
      std::string result = part();
      mine = seconds_since(start);
      return result;
    });
    waited_ += seconds_since(start) - mine;
    return results;
  }

  void describe() {
    const Settings& settings = runtime_.settings;
    manifest_.tag = to_.tag.empty() ? tag_of_step(engine_.steps_done()) : to_.tag;
    manifest_.stage = settings.zero.stage;
    manifest_.dtype = settings.dtype;
    manifest_.moments = moment_names(settings.optimizer);
    manifest_.progress = engine_.progress();
    for (const Parameter& each : engine_.model().parameters()) {
      manifest_.parameters.push_back({each.name(), each.shape(), each.requires_grad()});
    }
    manifest_.tied = tied_names(engine_.model());
    manifest_.run = to_.run;
  }

  // Before a byte is written.
  void agree_on_tag() {
    const std::vector<std::string> tags =
        share_texts(runtime_.comm, manifest_.tag, "tag of the checkpoint");
    const auto other = std::find_if(tags.begin(), tags.end(),
                                    [&tags](const std::string& tag) { return tag != tags[0]; });
    manifest_.tag = tags[0];
    const TagValidation validation = runtime_.settings.tag_validation;
    if (other == tags.end() || validation == TagValidation::ignore) return;
    const std::string what = fmt::format("rank 0 would save under '{}', and rank {} under '{}'",
                                         tags[0], other - tags.begin(), *other);
    if (validation == TagValidation::fail) {
      throw Error(Code::checkpoint_tags, what,
                  "make the tag of what all ranks know, such as the step");
    }
    report_.note = fmt::format("{}: all take '{}' (checkpoint.tag_validation)", what, tags[0]);
    runtime_.recorder.record(NoteEvent{report_.note});
  }

  std::string make_room() {
    if (!writes_first()) return {};
    make_folder(to_.folder);
    remove_leftovers(to_.folder);
    refuse_other_things(to_.folder / manifest_.tag);
    make_folder(partial_);
    return {};
  }

  std::string write_shard() {
    const std::vector<OwnedSlice> slices = engine_.counted();
    Shard mine{fmt::format("rank{}.safetensors", runtime_.rank()), {}, {}};
    for (const OwnedSlice& slice : slices) {
      mine.slices.push_back({static_cast<std::size_t>(slice.parameter->id()), slice.range});
    }
    const SafetensorsWriter header =
        manifest_.shard_header(static_cast<std::size_t>(runtime_.rank()), mine.slices);
    const std::string text = header.text();
    OutputFile file(partial_ / mine.file,
                    static_cast<Index>(text.size()) + header.header().data_bytes());
    file.write(text);
    for (const std::string& state : manifest_.states()) {
      for (const OwnedSlice& slice : slices) {
        const auto id = static_cast<std::size_t>(slice.parameter->id());
        if (!manifest_.has(state, manifest_.parameters[id])) continue;
        write_values(runtime_.device, values_of(slice, state), slice.range.size(), file);
      }
    }
    const FileDigest digest = file.close();
    io_seconds_ = file.write_seconds();
    sync_seconds_ = file.sync_seconds();
    bytes_ = digest.bytes;
    mine.digest = digest;
    return shard_text(mine, manifest_);
  }

  ConstValues values_of(const OwnedSlice& slice, const std::string& state) const {
    if (state == kWeights) return slice.weights;
    if (state == kMaster) return slice.master;
    const auto found = std::find(manifest_.moments.begin(), manifest_.moments.end(), state);
    return slice.moments.at(static_cast<std::size_t>(found - manifest_.moments.begin()));
  }

  void add_shard(const std::string& text) {
    manifest_.shards.push_back(shard_in(text, manifest_, manifest_.shards.size()));
  }

  // What every rank has written is there; now it gets its name.
  std::string publish() {
    if (!writes_first()) return {};
    for (const Shard& shard : manifest_.shards) {
      std::error_code failed;
      const auto bytes = fs::file_size(partial_ / shard.file, failed);
      if (!failed && static_cast<Index>(bytes) == shard.digest.bytes) continue;
      throw Error(Code::checkpoint_write,
                  fmt::format("{} has been written, and rank 0 does not see it",
                              (partial_ / shard.file).string()),
                  "save to a folder that is the same on all hosts");
    }
    const std::string text = to_text(manifest_);
    parse_manifest(text, (partial_ / kManifest).string());  // what cannot be read is not written
    OutputFile file(partial_ / kManifest, static_cast<Index>(text.size()));
    file.write(text);
    file.close();
    rename_durably(partial_, to_.folder / manifest_.tag);
    write_durably(to_.folder / kLatest, manifest_.tag + "\n");
    const std::string note = remove_beyond(to_.folder, to_.keep, manifest_.tag);
    if (!note.empty()) {
      report_.note = note;
      runtime_.recorder.record(NoteEvent{note});
    }
    return {};
  }

  void record() {
    const std::string path = (to_.folder / manifest_.tag).string();
    runtime_.recorder.record(CheckpointEvent{"save", path, bytes_, 1, report_.seconds, io_seconds_,
                                             sync_seconds_, waited_});
  }

  Runtime& runtime_;
  Engine& engine_;
  const SaveTo& to_;
  Manifest manifest_;
  fs::path partial_;
  SaveReport report_;
  Index bytes_ = 0;
  double io_seconds_ = 0, sync_seconds_ = 0, waited_ = 0;
};

}  // namespace

SaveReport save_checkpoint(Runtime& runtime, Engine& engine, const SaveTo& to) {
  const Phase before = runtime.recorder.phase();
  runtime.recorder.set_phase(Phase::save);
  SaveReport report = Save(runtime, engine, to).run();
  runtime.recorder.set_phase(before);
  return report;
}

void prepare_to_save(CommStream& comm, const fs::path& folder) {
  together(comm, "folder of checkpoints", [&]() -> std::string {
    if (comm.rank() != 0) return {};
    make_folder(folder);
    const fs::path probe = folder / ".probe.partial";
    OutputFile(probe, 0).close();
    std::error_code ignored;
    fs::remove(probe, ignored);
    return {};
  });
}

}  // namespace zerolab
