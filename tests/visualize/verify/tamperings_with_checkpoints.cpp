#include "lab/temporary_folder.hpp"
#include "tests/support/logged_saves.hpp"
#include "tests/support/trainings.hpp"
#include "tests/visualize/verify/tamperings.hpp"

namespace zerolab::test {

using verify::Kind;
using Json = LoggedRun::Json;

namespace {

Json event_of(const char* action) { return {{"ev", "checkpoint"}, {"action", action}}; }
const Json kLastSave{{"ev", "checkpoint"}, {"action", "save"}, {"step", 4}};

}  // namespace

LoggedRun resumed_run_to_tamper_with(int stage) {
  const TemporaryFolder folder;
  Training first = training_of(tiny_mlp(), 3 - stage);
  first.steps = 2;
  logged_saves(2, first, folder.path() / "first");
  Training second = training_of(tiny_mlp(), stage);
  second.steps = 4;
  const std::string resumed = (folder.path() / "first:global_step2").string();
  return logged_saves(3, second, folder.path() / "second", resumed);
}

std::vector<Tampering> tamperings_with_checkpoints() {
  return {
      {Kind::step_order, "run.json says that it was resumed from another step", kAllStages,
       [](LoggedRun& run) {
         run.run["resumed"]["step"] = 1;
         return Expected{0, run.find(0, {{"ev", "step"}}), {}, "step 3 ends as number 2"};
       }},
      {Kind::step_order, "run.json does not say that it was resumed", kAllStages,
       [](LoggedRun& run) {
         run.run["resumed"] = nullptr;
         return Expected{0, run.find(0, {{"ev", "step"}}), {}, "step 3 ends as number 1"};
       }},
      {Kind::step_order, "the first step behind the checkpoint is missing", kAllStages,
       [](LoggedRun& run) {
         run.erase(1, run.find(1, {{"ev", "step"}}));
         return Expected{1,
                         run.find(1, {{"ev", "step"}}),
                         {Kind::step_of_ranks, Kind::ends_early},
                         "step 4 ends as number 3"};
       }},
      {Kind::step_of_ranks, "behind a checkpoint ranks have different hashes", kAllStages,
       [](LoggedRun& run) {
         const std::size_t line = run.find(2, {{"ev", "step"}});
         run.change(2, line, [](Json& event) { event["hash"] = "0123456789abcdef"; });
         return Expected{2, line, {}, "the hash of step 3 is 0123456789abcdef"};
       }},
      {Kind::not_resumed, "no rank loads the checkpoint", kAllStages,
       [](LoggedRun& run) {
         erase_everywhere(run, event_of("load"));
         return Expected{0, std::string::npos, {}, "nothing is loaded"};
       }},
      {Kind::not_resumed, "all ranks load another checkpoint", kAllStages,
       [](LoggedRun& run) {
         change_everywhere(run, event_of("load"), [](Json& event) { event["path"] = "elsewhere"; });
         return Expected{0, run.find(0, event_of("load")), {}, "'elsewhere' is loaded"};
       }},
      {Kind::checkpoint_of_ranks, "a rank does not save", kAllStages,
       [](LoggedRun& run) {
         run.erase(2, run.find(2, event_of("save")));
         return Expected{2, run.find(2, event_of("save")), {}, "checkpoint 2 is save of '"};
       }},
      {Kind::checkpoint_of_ranks, "a rank does not tell of the file of all weights", kAllStages,
       [](LoggedRun& run) {
         run.erase(1, run.find(1, event_of("consolidate")));
         return Expected{1, std::string::npos, {}, "checkpoint 4 is none any more"};
       }},
      {Kind::checkpoint_of_ranks, "a rank saves to another place", kAllStages,
       [](LoggedRun& run) {
         const std::size_t line = run.find(1, kLastSave);
         run.change(1, line, [](Json& event) { event["path"] = "elsewhere"; });
         return Expected{1, line, {}, "save of 'elsewhere' in step 4"};
       }},
      {Kind::checkpoint_summary, "no rank tells of a checkpoint", kAllStages,
       [](LoggedRun& run) {
         erase_everywhere(run, event_of("save"));
         return Expected{0, run.find(0, kLastSave), {}, "summary.json has "};
       }},
      {Kind::checkpoint_summary, "a rank has written four bytes fewer", kAllStages,
       [](LoggedRun& run) {
         run.change(2, run.find(2, kLastSave),
                    [](Json& event) { event["bytes"] = event["bytes"].get<Index>() - 4; });
         return Expected{0, run.find(0, kLastSave)};
       }},
      {Kind::checkpoint_summary, "summary.json has a checkpoint that nobody saved", kAllStages,
       [](LoggedRun& run) {
         run.summary["checkpoints"].push_back(run.summary["checkpoints"][0]);
         return Expected{0, std::string::npos, {}, "come to nothing more"};
       }},
      {Kind::ends_early, "a log ends in the middle of its last checkpoint", kAllStages,
       [](LoggedRun& run) {
         const std::size_t line = run.find(1, event_of("consolidate"));
         run.cut = run.logs[1][line].substr(0, 60);
         run.logs[1].resize(line);
         return Expected{1, line};
       }},
      {Kind::unreadable_line, "a rank does something with a checkpoint that nobody knows",
       kAllStages,
       [](LoggedRun& run) {
         const std::size_t line = run.find(1, event_of("consolidate"));
         run.change(1, line, [](Json& event) { event["action"] = "burn"; });
         return Expected{1, line, {Kind::sequence, Kind::checkpoint_of_ranks}, "one of save, load"};
       }},
      {Kind::collective_bytes,
       "a rank sends four bytes too many to the one that saves",
       {3},
       [](LoggedRun& run) {
         const Json gather{{"ev", "comm"}, {"op", "gather"}, {"owner", kWeight}};
         run.change(2, run.find(2, gather), [](Json& event) {
           event["bytes_sent"] = event["bytes_sent"].get<Index>() + 4;
         });
         return Expected{0, run.find(0, gather), {}, "gather of 'layers.1.weight'"};
       }},
  };
}

}  // namespace zerolab::test
