#include "tests/support/logged_saves.hpp"

#include "stages/checkpoint/consolidate.hpp"
#include "tests/support/saved.hpp"

namespace zerolab::test {

LoggedRun logged_saves(int ranks, Training training, const std::filesystem::path& folder,
                       const std::optional<std::string>& resumed) {
  if (resumed) training = resuming(training, *resumed);
  training.settings.zero.gather_16bit_weights_on_model_save = true;
  LoggedRun::Json saved = LoggedRun::Json::array();
  training.after_step = [&saved, &folder, last = training.steps](Runtime& runtime, Engine& engine) {
    const Index step = engine.steps_done();
    const auto tell = [&](const std::filesystem::path& path, Index bytes) {
      if (runtime.rank() > 0) return;
      saved.push_back({{"step", step}, {"path", path.string()}, {"bytes", bytes}, {"seconds", 0}});
    };
    const SaveReport report = save_checkpoint(runtime, engine, {.folder = folder});
    tell(folder / report.tag, report.bytes);
    if (step < last) return;
    const std::filesystem::path weights = folder / "weights.safetensors";
    tell(weights, consolidate(runtime, engine, weights).bytes);
  };
  LoggedRun run = logged_run(ranks, training);
  run.summary["checkpoints"] = saved;
  if (resumed) {
    const Checkpoint checkpoint = Checkpoint::open(*resumed);
    run.run["resumed"] = {{"checkpoint", checkpoint.folder().string()},
                          {"step", checkpoint.manifest().progress.steps_done}};
  }
  return run;
}

}  // namespace zerolab::test
