#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "lab/bench/topics.hpp"
#include "lab/bench/trainer.hpp"
#include "lab/run_json.hpp"
#include "lab/table.hpp"
#include "lab/temporary_folder.hpp"
#include "stages/checkpoint/load.hpp"
#include "stages/checkpoint/merge.hpp"
#include "stages/checkpoint/save.hpp"
#include "stages/checkpoint/together.hpp"

namespace zerolab::bench {
namespace {

namespace fs = std::filesystem;

// Both within one run and on one disk, so only this is a target.
constexpr Target kWriting{Target::Kind::at_least, 0.70};

using Block = std::vector<char>;
Block block() { return Block(std::size_t{1} << 20, 'z'); }

[[noreturn]] void fail(const fs::path& file) {
  throw Error(Code::internal, fmt::format("{}: {}", file.string(), std::strerror(errno)), "");
}

// What `dd bs=1M conv=fsync` does.
void write_plainly(const fs::path& file, Index bytes, const Block& block) {
  const int out = ::open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0666);
  if (out < 0) fail(file);
  for (Index rest = bytes; rest > 0; rest -= static_cast<Index>(block.size())) {
    const auto part = std::min(static_cast<std::size_t>(rest), block.size());
    if (::write(out, block.data(), part) != static_cast<ssize_t>(part)) fail(file);
  }
  if (::fsync(out) != 0 || ::close(out) != 0) fail(file);
}

void read_plainly(const fs::path& file, Block& block) {
  const int in = ::open(file.c_str(), O_RDONLY);
  if (in < 0) fail(file);
  while (::read(in, block.data(), block.size()) > 0) {
  }
  ::close(in);
}

// Out of the page cache, so that the disk is read.
void forget(const fs::path& file) {
  const int in = ::open(file.c_str(), O_RDONLY);
  if (in < 0) fail(file);
  ::posix_fadvise(in, 0, 0, POSIX_FADV_DONTNEED);
  ::close(in);
}

// Eight million parameters, 96 MB of states in fp32, as gpt2 cuts them.
std::string description_of_gpt2_in_small(const TemporaryFolder& folder) {
  ModelDescription model = describe_model("gpt2");
  model.num_layers = 10;
  model.num_heads = 8;
  model.hidden_size = 256;
  model.vocab_size = 256;
  model.sequence_length = 64;
  model.name = "gpt2-in-small";
  std::ofstream(folder.path() / "model.json") << to_json(model);
  return (folder.path() / "model.json").string();
}

/// What the saves of one rank are made of, from its checkpoint events.
struct Parts {
  double seconds = 0, io = 0, sync = 0, wait = 0;

  void add(const CheckpointEvent& event) {
    seconds += event.seconds;
    io += event.io_seconds;
    sync += event.sync_seconds;
    wait += event.wait_seconds;
  }
  std::string text() const {
    const auto percent = [this](double part) { return 100 * part / seconds; };
    return fmt::format("write {:.0f}%, fsync {:.0f}%, other ranks {:.0f}%, the rest {:.0f}%",
                       percent(io), percent(sync), percent(wait),
                       percent(seconds - io - sync - wait));
  }
};

std::string speed(Index bytes, const std::vector<double>& seconds) {
  const double median = spread_of(seconds).median;
  return fmt::format("{} in {}, {:.0f} MB/s", human_bytes(bytes), human_seconds(median),
                     static_cast<double>(bytes) / median / 1e6);
}

/// One training of all ranks, whose states are saved, loaded and merged.
class Checkpoints {
 public:
  Checkpoints(Worlds& worlds, const std::string& model, int stage)
      : worlds_(worlds),
        name_(fmt::format("stage {}", stage)),
        trainer_(*worlds.first.at(worlds.size), training_of(model, worlds.size, stage)),
        folder_(share_texts(trainer_.runtime().comm, own_folder_.path().string(), "folder")[0]) {
    trainer_.run(1);
    trainer_.runtime().recorder.observe([this](const Stamp&, const Event& event) {
      if (const auto* checkpoint = std::get_if<CheckpointEvent>(&event)) last_ = *checkpoint;
    });
    save();
    shard_bytes_ = last_.bytes;
  }

  std::vector<Figure> measure(int rounds) {
    std::vector<Figure> figures = saving(rounds);
    figures.push_back(loading(rounds));
    figures.push_back(merging(rounds));
    worlds_.meet();  // before the folder goes
    return figures;
  }

 private:
  fs::path own_file() const {
    return folder_ / fmt::format("global_step1/rank{}.safetensors", worlds_.rank);
  }
  fs::path plain_file() const { return folder_ / fmt::format("plain{}", worlds_.rank); }

  void save() {
    report_ = save_checkpoint(trainer_.runtime(), trainer_.engine(), {.folder = folder_});
  }

  std::vector<Figure> saving(int rounds) {
    Parts parts;
    const auto before = [this] {
      fs::remove(plain_file());
      if (worlds_.rank == 0) fs::remove_all(folder_ / report_.tag);
      worlds_.meet();
    };
    const Work one{[this] {
                     if (worlds_.rank == 0) write_plainly(plain_file(), report_.bytes, block_);
                     worlds_.meet();
                   },
                   before};
    const Work every{[this] {
                       write_plainly(plain_file(), shard_bytes_, block_);
                       worlds_.meet();
                     },
                     before};
    const Work ours{[&] {
                      save();
                      parts.add(last_);
                    },
                    before};
    const auto seconds = interleave(rounds, {one, ours, every});
    before();
    save();  // to load
    return {percent_figure(name_ + ": speed of a save, of one write + fsync of all",
                           ratio_of(seconds[0], seconds[1]), kWriting,
                           speed(report_.bytes, seconds[1])),
            percent_figure(name_ + ": the same, of one on each rank",
                           ratio_of(seconds[2], seconds[1]), {}, parts.text())};
  }

  Figure loading(int rounds) {
    const auto before = [this] {
      worlds_.meet();
      forget(own_file());
      worlds_.meet();
    };
    const auto seconds =
        interleave(rounds, {{[&] {
                               read_plainly(own_file(), block_);
                               worlds_.meet();
                             },
                             before},
                            {[&] {
                               load_checkpoint(trainer_.runtime(), trainer_.engine(),
                                               Checkpoint::open(folder_.string()));
                               worlds_.meet();
                             },
                             before}});
    return percent_figure(name_ + ": speed of loading, of read alone",
                          ratio_of(seconds[0], seconds[1]), {}, speed(report_.bytes, seconds[1]));
  }

  // By one rank, while the others sleep; against a copy of the file that comes of it.
  Figure merging(int rounds) {
    std::vector<std::vector<double>> seconds{{1}, {1}};
    Index bytes = 0;
    if (worlds_.rank == 0) {
      const fs::path merged = folder_ / "merged.safetensors";
      const Checkpoint checkpoint = Checkpoint::open(folder_.string());
      bytes = merge_checkpoint(checkpoint, merged, {}).bytes;
      const auto before = [&] {
        for (std::size_t rank = 0; rank < checkpoint.manifest().shards.size(); ++rank) {
          forget(checkpoint.file_of(rank));
        }
        forget(merged);
        fs::remove(plain_file());
      };
      seconds = interleave(rounds, {{[&] {
                                       read_plainly(merged, block_);
                                       write_plainly(plain_file(), bytes, block_);
                                     },
                                     before},
                                    {[&] { merge_checkpoint(checkpoint, merged, {}); }, before}});
    }
    worlds_.meet();
    return percent_figure(name_ + ": speed of a merge, of read, write + fsync alone",
                          ratio_of(seconds[0], seconds[1]), {}, speed(bytes, seconds[1]));
  }

  Worlds& worlds_;
  std::string name_;
  TemporaryFolder own_folder_;
  Trainer trainer_;
  fs::path folder_;  // rank 0's own
  CheckpointEvent last_;
  SaveReport report_;
  Index shard_bytes_ = 0;
  Block block_ = block();
};

}  // namespace

std::vector<Figure> checkpoint(Worlds& worlds, Effort effort) {
  const TemporaryFolder folder;
  const std::string model = effort.quick ? "mlp-small" : description_of_gpt2_in_small(folder);
  std::vector<Figure> figures;
  for (const int stage : {0, 3}) {
    for (Figure& figure : Checkpoints(worlds, model, stage).measure(effort.rounds(15))) {
      figures.push_back(std::move(figure));
    }
  }
  return figures;
}

}  // namespace zerolab::bench
