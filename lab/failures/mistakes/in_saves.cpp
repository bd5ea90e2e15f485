// Mistakes of those who save, and accidents of what was saved.
#include <fmt/format.h>

#include <fstream>

#include "lab/failures/mistakes/mistake.hpp"
#include "stages/checkpoint/checkpoint.hpp"
#include "stages/checkpoint/together.hpp"
#include "stages/engine/gathered_parameters.hpp"

namespace zerolab {
namespace {

namespace fs = std::filesystem;

constexpr int kRank = 1;
constexpr Index kStep = 3;  // checkpoints from here on come to harm, and those before do not

SaveReport save_on_rank_0(Runtime& runtime, Engine& engine, const SaveTo& to) {
  if (runtime.rank() != 0) return {};
  return save_checkpoint(runtime, engine, to);
}

SaveReport save_under_own_tag(Runtime& runtime, Engine& engine, const SaveTo& to) {
  SaveTo own = to;
  own.tag = fmt::format("{}_of_rank{}", tag_of_step(engine.steps_done()), runtime.rank());
  return save_checkpoint(runtime, engine, own);
}

SaveReport gather_all_to_save(Runtime& runtime, Engine& engine, const SaveTo& to) {
  std::vector<Parameter*> all;
  for (Parameter& parameter : engine.model().parameters()) all.push_back(&parameter);
  runtime.recorder.set_phase(Phase::save);
  const GatheredParameters scope(runtime, engine.stage(), all);
  return save_checkpoint(runtime, engine, to);
}

/// What happens to the checkpoint when it is there.
template <void (*harm)(const SaveTo& to, const fs::path& saved)>
SaveReport save_and_harm(Runtime& runtime, Engine& engine, const SaveTo& to) {
  SaveReport report = save_checkpoint(runtime, engine, to);
  together(runtime.comm, "harm to the checkpoint", [&]() -> std::string {
    if (runtime.rank() == 0 && engine.steps_done() >= kStep) harm(to, to.folder / report.tag);
    return {};
  });
  return report;
}

fs::path shard_in(const fs::path& saved) {
  return saved / fmt::format("rank{}.safetensors", kRank);
}

void lose_shard(const SaveTo& /*to*/, const fs::path& saved) { fs::remove(shard_in(saved)); }

void cut_shard(const SaveTo& /*to*/, const fs::path& saved) {
  fs::resize_file(shard_in(saved), fs::file_size(shard_in(saved)) - 1);
}

void flip_bit(const SaveTo& /*to*/, const fs::path& saved) {
  const auto middle = static_cast<std::streamoff>(fs::file_size(shard_in(saved)) / 2);
  std::fstream file(shard_in(saved), std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(middle);
  const int byte = file.get();
  file.seekp(middle);
  file.put(static_cast<char>(byte ^ 1));
}

void remove_what_is_latest(const SaveTo& /*to*/, const fs::path& saved) { fs::remove_all(saved); }

}  // namespace

std::vector<Mistake> mistakes_in_saves() {
  return {
      {"save-on-one-rank", "rank 0 saves, and the others go on", {}, {}, save_on_rank_0},
      {"own-tag", "every rank saves under a tag of its own", {}, {}, save_under_own_tag},
      {"gather-all-to-save",
       "all weights are gathered at once to be saved",
       {},
       {},
       gather_all_to_save},
      {"shard-lost",
       "from step 3 on the file of rank 1 is lost",
       {},
       {},
       save_and_harm<lose_shard>},
      {"shard-cut",
       "from step 3 on the file of rank 1 lacks its last byte",
       {},
       {},
       save_and_harm<cut_shard>},
      {"shard-flipped",
       "from step 3 on one bit in the file of rank 1 changes",
       {},
       {},
       save_and_harm<flip_bit>},
      {"latest-removed",
       "from step 3 on the checkpoint that latest names is removed",
       {},
       {},
       save_and_harm<remove_what_is_latest>},
  };
}

}  // namespace zerolab
