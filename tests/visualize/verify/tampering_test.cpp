// Good logs with one thing changed: verify finds it, as what it is and where it is.

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "lab/temporary_folder.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/logged_run.hpp"
#include "tests/support/trainings.hpp"
#include "visualize/verify/replay.hpp"

namespace zerolab::test {
namespace {

using verify::Kind;
using Json = LoggedRun::Json;

/// Where a violation has to be found; `others` are kinds that the same change leads to.
struct Expected {
  std::size_t rank;
  std::size_t line;  // from 0, as the lists count
  std::vector<Kind> others = {};
  std::string says = {};  // part of its text
};

struct Tampering {
  Kind kind;
  std::string what;
  std::vector<int> stages;
  std::function<Expected(LoggedRun&)> plant;
};

/// Two steps of two micro-steps with a validation and a text; every gradient is reduced by itself.
LoggedRun good_run(int stage) {
  Training training = training_of(tiny_mlp(), stage);
  training.steps = 2;
  training.settings.gradient_accumulation_steps = 2;
  training.settings.zero.reduce_bucket_size = 1;
  training.settings.zero.overlap_comm = true;
  training.settings.zero.prefetch_bucket_size = 60;
  training.settings.zero.param_persistence_threshold = 5;
  training.validation = training.batches;
  training.validation_sequences = 5;
  training.generate = Sampling{.count = 2, .prompt = "\1"};
  return logged_run(3, training);
}

const std::vector<int> kAll{0, 1, 2, 3};
const std::string kWeight = "layers.1.weight";  // 33 x 5, never persistent

Json gradient(const char* to) { return {{"ev", "grad"}, {"parameter", kWeight}, {"to", to}}; }
Json parameter(const char* to) { return {{"ev", "param"}, {"parameter", kWeight}, {"to", to}}; }
Json comm_of_weight(const std::string& op) {
  return {{"ev", "comm"}, {"op", op}, {"owner", kWeight}};
}
Json reduction(const LoggedRun& run) {
  return comm_of_weight(run.run["stage"] == 0 ? "all_reduce" : "reduce_scatter");
}

/// Of every rank the first line that has these fields.
void erase_everywhere(LoggedRun& run, const Json& fields) {
  for (std::size_t rank = 0; rank < 3; ++rank) run.erase(rank, run.find(rank, fields));
}
void change_everywhere(LoggedRun& run, const Json& fields, const std::function<void(Json&)>& edit) {
  for (std::size_t rank = 0; rank < 3; ++rank) run.change(rank, run.find(rank, fields), edit);
}

/// The line of the last release of the weight before its second step ends.
std::size_t last_release_in_step(const LoggedRun& run, std::size_t rank, int step) {
  const std::size_t end = run.find(rank, {{"ev", "step"}, {"step", step}});
  std::size_t found = 0;
  for (std::size_t at = run.find(rank, parameter("NOT_AVAILABLE")); at < end;
       at = run.find(rank, parameter("NOT_AVAILABLE"), at + 1)) {
    found = at;
  }
  return found;
}

const std::vector<Tampering>& of_lines() {
  static const std::vector<Tampering> all{
      {Kind::unreadable_line, "a line is no JSON", kAll,
       [](LoggedRun& run) {
         const std::size_t line = run.find(1, {{"ev", "span"}});
         run.logs[1][line] += "}";
         return Expected{1, line, {Kind::sequence}, "is not JSON"};
       }},
      {Kind::unreadable_line, "an event of an unknown kind", kAll,
       [](LoggedRun& run) {
         const std::size_t line = run.find(1, {{"ev", "span"}});
         run.change(1, line, [](Json& event) { event["ev"] = "spam"; });
         return Expected{1, line, {Kind::sequence}, "no kind of event"};
       }},
      {Kind::sequence, "a line is missing", kAll,
       [](LoggedRun& run) {
         const std::size_t line = run.find(2, {{"ev", "span"}});
         run.logs[2].erase(run.logs[2].begin() + static_cast<std::ptrdiff_t>(line));
         return Expected{2, line};
       }},
      {Kind::other_rank, "a line of another rank", kAll,
       [](LoggedRun& run) {
         run.change(1, 20, [](Json& event) { event["rank"] = 2; });
         return Expected{1, 20};
       }},
      {Kind::going_back, "time goes back", kAll,
       [](LoggedRun& run) {
         const std::size_t line = run.find(1, {{"ev", "free"}, {"phase", "backward"}});
         run.change(1, line, [](Json& event) { event["t"] = -1e9; });
         return Expected{1, line};
       }},
      {Kind::going_back, "micro-steps go back", kAll,
       [](LoggedRun& run) {
         const std::size_t line = run.find(1, {{"ev", "free"}, {"micro_step", 1}});
         run.change(1, line, [](Json& event) { event["micro_step"] = 0; });
         return Expected{1, line, {}, "micro-step 0 after"};
       }},
      {Kind::going_back, "a module ends before it begins", kAll,
       [](LoggedRun& run) {
         const std::size_t line = run.find(1, {{"ev", "span"}, {"module", "gelus.0"}});
         run.change(1, line, [](Json& event) { event["start"] = event["t"].get<double>() + 5; });
         return Expected{1, line};
       }},
      {Kind::missing_file, "a rank's log is missing", kAll,
       [](LoggedRun& run) {
         run.logs[2].clear();
         return Expected{2, std::string::npos};
       }},
      {Kind::ends_early, "a log of a whole run is cut in the middle of a line", kAll,
       [](LoggedRun& run) {
         run.cut = run.logs[1][200].substr(0, 40);
         run.logs[1].resize(200);
         return Expected{1, 200};
       }},
      {Kind::ends_early, "a log of a whole run lacks its last step", kAll,
       [](LoggedRun& run) {
         const std::size_t step = run.find(1, {{"ev", "step"}, {"step", 2}});
         run.logs[1].resize(step);
         return Expected{1, step - 1};
       }},
      {Kind::unknown_name, "a span of a module that there is not", kAll,
       [](LoggedRun& run) {
         const std::size_t line = run.find(0, {{"ev", "span"}, {"module", "layers.1"}});
         run.change(0, line, [](Json& event) { event["module"] = "layers.11"; });
         return Expected{0, line};
       }},
      {Kind::unknown_name, "a gradient of a parameter that there is not", kAll,
       [](LoggedRun& run) {
         const std::size_t line = run.find_last(0, gradient("partial"));
         run.change(0, line, [](Json& event) { event["parameter"] = "?"; });
         return Expected{0, line, {Kind::missing_gradient_transition}};
       }},
  };
  return all;
}

const std::vector<Tampering>& of_parameters() {
  static const std::vector<Tampering> all{
      {Kind::declared_moves, "run.json declares a move that no stage makes", kAll,
       [](LoggedRun& run) {
         run.run["state_machine"]["parameter"].push_back(
             {{"from", "INFLIGHT"}, {"to", "NOT_AVAILABLE"}, {"cause", "release"}});
         return Expected{0, std::string::npos, {}, "INFLIGHT to NOT_AVAILABLE by release"};
       }},
      {Kind::declared_moves, "run.json declares a move of a gradient that none makes", kAll,
       [](LoggedRun& run) {
         run.run["state_machine"]["gradient"].push_back({{"from", "none"}, {"to", "ready"}});
         return Expected{0, std::string::npos, {}, "none to ready"};
       }},
      {Kind::missing_transition,
       "a parameter is set up twice",
       {0, 1, 2},
       [](LoggedRun& run) {
         const std::size_t line = run.find(1, parameter("AVAILABLE"));
         run.insert(1, line + 1, run.event(1, line));
         return Expected{1, line + 1, {}, fmt::format("it is AVAILABLE since line {}", line + 1)};
       }},
      {Kind::missing_transition,
       "publish does not begin",
       {1, 2},
       [](LoggedRun& run) {
         const std::size_t line = run.find(1, parameter("INFLIGHT"));
         run.erase(1, line);
         return Expected{
             1, run.find(1, parameter("AVAILABLE"), line), {Kind::gather_without_collective}};
       }},
      {Kind::missing_transition,
       "a release is missing",
       {3},
       [](LoggedRun& run) {
         const std::size_t line = run.find(1, parameter("NOT_AVAILABLE"));
         run.erase(1, line);
         return Expected{1, run.find(1, parameter("INFLIGHT"), line), {}, "it is AVAILABLE since"};
       }},
      {Kind::illegal_transition,
       "a release by publish",
       {3},
       [](LoggedRun& run) {
         const std::size_t line = run.find(1, parameter("NOT_AVAILABLE"));
         run.change(1, line, [](Json& event) { event["cause"] = "publish"; });
         return Expected{1, line, {}, "no parameter moves so in stage 3"};
       }},
      {Kind::illegal_transition,
       "a fetch where everything is whole",
       {0, 1, 2},
       [](LoggedRun& run) {
         const std::size_t line = run.find(1, parameter("AVAILABLE"));
         run.change(1, line, [](Json& event) { event["cause"] = "fetch"; });
         return Expected{1, line, {Kind::gather_without_collective}};
       }},
      {Kind::illegal_transition,
       "it arrives by another cause than it was sent for",
       {3},
       [](LoggedRun& run) {
         const std::size_t line =
             run.find(1, {{"parameter", kWeight}, {"from", "INFLIGHT"}, {"cause", "fetch"}});
         run.change(1, line, [](Json& event) { event["cause"] = "prefetch"; });
         return Expected{1, line, {}, "it was sent for by fetch"};
       }},
      {Kind::illegal_transition,
       "what run.json does not call persistent persists",
       {3},
       [](LoggedRun& run) {
         for (Json& each : run.run["parameters"]) each["persistent"] = false;
         return Expected{0,
                         run.find(0, {{"cause", "step"}}),
                         {Kind::gather_without_release, Kind::step_ends_gathered}};
       }},
      {Kind::release_while_active,
       "a release while a module is active",
       {3},
       [](LoggedRun& run) {
         const std::size_t line = run.find(2, parameter("NOT_AVAILABLE"));
         run.change(2, line, [](Json& event) { event["active"] = 1; });
         return Expected{2, line};
       }},
      {Kind::gather_without_collective,
       "a gather without its all-gather",
       {3},
       [](LoggedRun& run) {
         const std::size_t line = run.find(0, comm_of_weight("all_gather"));
         erase_everywhere(run, comm_of_weight("all_gather"));
         return Expected{0, run.find(0, parameter("AVAILABLE"), line), {Kind::traffic_summary}};
       }},
      {Kind::gather_without_collective,
       "weights that are published without an all-gather",
       {1, 2},
       [](LoggedRun& run) {
         erase_everywhere(run, {{"op", "all_gather"}});
         const std::size_t line = run.find(0, {{"cause", "publish"}, {"to", "AVAILABLE"}});
         return Expected{0, line, {Kind::traffic_summary}};
       }},
      {Kind::available_too_early,
       "AVAILABLE before the all-gather has finished",
       {3},
       [](LoggedRun& run) {
         const std::size_t line = run.find(1, comm_of_weight("all_gather"));
         const std::size_t there = run.find(1, parameter("AVAILABLE"), line);
         const double t = run.event(1, there)["t"];
         run.change(1, line, [&](Json& event) { event["finished"] = t + 1; });
         return Expected{1, there, {Kind::collective_times}};
       }},
      {Kind::use_while_not_available,
       "a module begins before what it reads is there",
       {3},
       [](LoggedRun& run) {
         const std::size_t line = run.find(1, {{"ev", "span"}, {"module", "layers.1"}});
         const double t = run.event(1, run.find(1, parameter("AVAILABLE")))["t"];
         run.change(1, line, [&](Json& event) { event["start"] = t - 1; });
         return Expected{1, line, {}, kWeight};
       }},
      {Kind::use_while_not_available,
       "a module reads another one's parameter unregistered",
       {3},
       [](LoggedRun& run) {
         for (Json& module : run.run["modules"]) {
           if (module["name"] == "gelus.0") module["external"].push_back(kWeight);
         }
         return Expected{0, run.find(0, {{"ev", "span"}, {"module", "gelus.0"}}), {}, "gelus.0"};
       }},
      {Kind::use_while_not_available,
       "a parameter that is never set up",
       {0, 1, 2},
       [](LoggedRun& run) {
         run.erase(1, run.find(1, parameter("AVAILABLE")));
         const std::size_t line = run.find(1, {{"ev", "span"}, {"module", "layers.1"}});
         std::vector<Kind> others;
         if (run.run["stage"] != 0) others = {Kind::missing_transition};
         return Expected{1, line, others, "NOT_AVAILABLE from the start"};
       }},
      {Kind::release_while_in_use,
       "a release in the middle of a module's run",
       {3},
       [](LoggedRun& run) {
         const std::size_t line = run.find(1, parameter("NOT_AVAILABLE"));
         const std::size_t span = run.find(1, {{"ev", "span"}, {"module", "layers.1"}});
         Json release = run.event(1, line);
         release["t"] = run.event(1, span - 1)["t"];
         run.erase(1, line);
         run.insert(1, span, release);
         return Expected{1, span + 1, {}, kWeight};
       }},
      {Kind::gather_without_release,
       "the last release is missing",
       {3},
       [](LoggedRun& run) {
         run.erase(1, run.find_last(1, parameter("NOT_AVAILABLE")));
         return Expected{1, run.find_last(1, parameter("AVAILABLE")), {}, "at the end of the log"};
       }},
      {Kind::gather_without_release,
       "nothing is let go between two micro-steps",
       {3},
       [](LoggedRun& run) {
         const std::size_t next = run.find(1, {{"ev", "span"}, {"step", 1}, {"micro_step", 1}});
         std::size_t line = 0;
         for (std::size_t at = run.find(1, parameter("NOT_AVAILABLE")); at < next;
              at = run.find(1, parameter("NOT_AVAILABLE"), at + 1)) {
           line = at;
         }
         run.erase(1, line);
         std::size_t gathered = 0;
         for (std::size_t at = run.find(1, parameter("AVAILABLE")); at < line;
              at = run.find(1, parameter("AVAILABLE"), at + 1)) {
           gathered = at;
         }
         return Expected{1, gathered, {Kind::missing_transition}, "when the next pass begins"};
       }},
      {Kind::step_ends_gathered,
       "a step ends with something gathered",
       {3},
       [](LoggedRun& run) {
         run.erase(1, last_release_in_step(run, 1, 1));
         return Expected{1, run.find(1, {{"ev", "step"}}), {Kind::missing_transition}};
       }},
  };
  return all;
}

const std::vector<Tampering>& of_gradients() {
  static const std::vector<Tampering> all{
      {Kind::missing_gradient_transition, "a gradient is ready without a word", kAll,
       [](LoggedRun& run) {
         const std::size_t line = run.find(1, gradient("ready"));
         run.erase(1, line);
         return Expected{1, run.find(1, gradient("reducing"))};
       }},
      {Kind::illegal_gradient_transition, "a gradient is reduced before it is ready", kAll,
       [](LoggedRun& run) {
         const std::size_t line = run.find(1, gradient("reducing"));
         run.change(1, line, [](Json& event) { event["from"] = "partial"; });
         return Expected{1, line, {Kind::missing_gradient_transition}};
       }},
      {Kind::illegal_gradient_transition,
       "a frozen parameter has a gradient",
       {3},
       [](LoggedRun& run) {
         for (Json& each : run.run["parameters"]) {
           if (each["name"] == kWeight) each["requires_grad"] = false;
         }
         return Expected{0, run.find(0, gradient("partial")), {}, "is frozen"};
       }},
      {Kind::reduced_without_collective, "a gradient is reduced without a collective", kAll,
       [](LoggedRun& run) {
         erase_everywhere(run, reduction(run));
         return Expected{0, run.find(0, gradient("reduced")), {Kind::traffic_summary}};
       }},
      {Kind::reduced_too_early, "a gradient is reduced before its collective has finished", kAll,
       [](LoggedRun& run) {
         const std::size_t there = run.find(1, gradient("reduced"));
         const double t = run.event(1, there)["t"];
         run.change(1, run.find(1, reduction(run)),
                    [&](Json& event) { event["finished"] = t + 1; });
         return Expected{1, there, {Kind::collective_times}};
       }},
      {Kind::not_reduced, "a gradient is not reduced in a step", kAll,
       [](LoggedRun& run) {
         const std::size_t first = run.find(1, {{"ev", "step"}});
         for (const char* to : {"partial", "ready", "reducing", "reduced", "freed"}) {
           for (;;) {  // of every micro-step
             std::size_t at = 0;
             try {
               at = run.find(1, gradient(to), first);
             } catch (const std::runtime_error&) {
               break;
             }
             run.erase(1, at);
           }
         }
         const std::size_t second = run.find(1, {{"ev", "step"}, {"step", 2}});
         return Expected{1, second, {Kind::collective_of_nothing}, "never reduced"};
       }},
  };
  return all;
}

const std::vector<Tampering>& of_memory_and_steps() {
  static const std::vector<Tampering> all{
      {Kind::live_bytes, "live is four bytes too many", kAll,
       [](LoggedRun& run) {
         const std::size_t line = run.find_last(1, {{"ev", "free"}, {"phase", "backward"}});
         run.change(1, line, [](Json& event) { event["live"] = event["live"].get<Index>() + 4; });
         return Expected{1, line};
       }},
      {Kind::live_bytes, "a free of more bytes than were allocated", kAll,
       [](LoggedRun& run) {
         const std::size_t line = run.find_last(1, {{"ev", "free"}, {"phase", "backward"}});
         run.change(1, line, [](Json& event) { event["bytes"] = event["bytes"].get<Index>() + 4; });
         return Expected{1, line, {Kind::free_of_nothing, Kind::never_freed, Kind::memory_summary}};
       }},
      {Kind::peak_bytes, "the peak is four bytes too many", kAll,
       [](LoggedRun& run) {
         const std::size_t line = run.find_last(1, {{"ev", "free"}});
         run.change(1, line, [](Json& event) { event["peak"] = event["peak"].get<Index>() + 4; });
         return Expected{1, line};
       }},
      {Kind::free_of_nothing, "a free by another owner", kAll,
       [](LoggedRun& run) {
         const std::size_t line = run.find(1, {{"ev", "free"}, {"category", "activations"}});
         run.change(1, line, [](Json& event) { event["owner"] = "nobody"; });
         return Expected{1, line, {Kind::never_freed, Kind::memory_summary}};
       }},
      {Kind::over_budget, "a budget that is one byte too small", kAll,
       [](LoggedRun& run) {
         const Json peak = run.event(0, run.logs[0].size() - 1)["peak"];
         run.run["device_memory"] = peak.get<Index>() - 1;
         return Expected{0, run.find(0, {{"live", peak}})};
       }},
      {Kind::never_freed, "the last free is missing", kAll,
       [](LoggedRun& run) {
         Json taken = run.event(1, run.logs[1].size() - 1);
         run.logs[1].pop_back();
         taken["ev"] = "alloc";
         return Expected{1, run.find(1, {{"ev", "alloc"}, {"owner", taken["owner"]}})};
       }},
      {Kind::memory_summary, "steady memory that the log does not have", kAll,
       [](LoggedRun& run) {
         Json& bytes = run.summary["memory"][1]["device"]["steady"]["gradients"];
         bytes = bytes.get<Index>() + 8;
         return Expected{1, std::string::npos, {}, "as steady of rank 1"};
       }},
      {Kind::memory_summary, "a peak that the log does not have", kAll,
       [](LoggedRun& run) {
         run.summary["memory"][2]["device"]["category_peak"]["optimizer"] = 0;
         return Expected{2, std::string::npos, {}, "0 bytes of optimizer as category_peak"};
       }},
      {Kind::step_order, "a step is told twice", kAll,
       [](LoggedRun& run) {
         const std::size_t line = run.find(1, {{"ev", "step"}, {"step", 2}});
         run.insert(1, line, run.event(1, line));
         return Expected{1, line + 1, {Kind::not_reduced}};
       }},
      {Kind::step_of_ranks, "ranks have different losses", kAll,
       [](LoggedRun& run) {
         const std::size_t line = run.find(1, {{"ev", "step"}, {"step", 2}});
         run.change(1, line,
                    [](Json& event) { event["loss"] = event["loss"].get<double>() + 1e-9; });
         return Expected{1, line, {}, "the loss of step 2"};
       }},
      {Kind::step_of_ranks, "ranks have different hashes", kAll,
       [](LoggedRun& run) {
         const std::size_t line = run.find(2, {{"ev", "step"}});
         run.change(2, line, [](Json& event) { event["hash"] = "0123456789abcdef"; });
         return Expected{2, line, {}, "the hash of step 1 is 0123456789abcdef"};
       }},
      {Kind::step_summary, "summary.json has another gradient norm", kAll,
       [](LoggedRun& run) {
         run.summary["steps"][1]["grad_norm"] = nullptr;
         return Expected{0, run.find(0, {{"ev", "step"}, {"step", 2}}), {}, "has null"};
       }},
  };
  return all;
}

const std::vector<Tampering>& of_collectives() {
  static const std::vector<Tampering> all{
      {Kind::collective_order, "a rank calls another collective", kAll,
       [](LoggedRun& run) {
         const std::size_t line = run.find(2, {{"ev", "comm"}, {"op", "control"}});
         run.change(2, line, [](Json& event) { event["owner"] = "something else"; });
         return Expected{2, line, {}, "on rank 0 it is control of"};
       }},
      {Kind::collective_order, "a rank calls the same with other elements", kAll,
       [](LoggedRun& run) {
         const std::size_t line = run.find(2, {{"ev", "comm"}, {"op", "control"}});
         run.change(2, line, [](Json& event) { event["elements"] = 1; });
         return Expected{2, line};
       }},
      {Kind::collective_order, "a rank calls one less", kAll,
       [](LoggedRun& run) {
         run.erase(1, run.find_last(1, {{"ev", "comm"}}));
         return Expected{1, std::string::npos, {}, "none any more"};
       }},
      {Kind::collective_bytes, "a rank sends four bytes too many", kAll,
       [](LoggedRun& run) {
         run.change(1, run.find(1, reduction(run)), [](Json& event) {
           event["bytes_sent"] = event["bytes_sent"].get<Index>() + 4;
         });
         return Expected{0, run.find(0, reduction(run)), {}, "theory says"};
       }},
      {Kind::collective_elements, "a reduction of more elements than there are", kAll,
       [](LoggedRun& run) {
         change_everywhere(run, reduction(run), [](Json& event) {
           event["elements"] = event["elements"].get<Index>() + 1;
         });
         return Expected{
             0, run.find(0, reduction(run)), {Kind::collective_bytes, Kind::traffic_summary}};
       }},
      {Kind::collective_elements,
       "an all-gather of fewer elements than there are",
       {1, 2, 3},
       [](LoggedRun& run) {
         const Json gather{{"op", "all_gather"}};
         change_everywhere(run, gather, [](Json& event) { event["elements"] = 1; });
         return Expected{0, run.find(0, gather), {Kind::collective_bytes, Kind::traffic_summary}};
       }},
      {Kind::collective_times, "a collective starts before it is issued", kAll,
       [](LoggedRun& run) {
         const std::size_t line = run.find(1, reduction(run));
         run.change(1, line,
                    [](Json& event) { event["started"] = event["issued"].get<double>() - 1; });
         return Expected{1, line};
       }},
      {Kind::collective_of_nothing,
       "an all-gather of what is not on its way",
       {3},
       [](LoggedRun& run) {
         const std::size_t line = run.find(0, comm_of_weight("all_gather"));
         change_everywhere(run, comm_of_weight("all_gather"),
                           [](Json& event) { event["owner"] = "embedding.weight"; });
         return Expected{0, line, {Kind::gather_without_collective}};
       }},
      {Kind::collective_of_nothing, "a reduction of what is not on its way", kAll,
       [](LoggedRun& run) {
         const Json fields = reduction(run);
         const std::size_t line = run.find(0, fields);
         change_everywhere(run, fields, [](Json& event) { event["owner"] = kWeight + " .. x"; });
         return Expected{0, line, {Kind::reduced_without_collective}};
       }},
      {Kind::traffic_summary, "summary.json counts a call too many", kAll,
       [](LoggedRun& run) {
         Json& calls = run.summary["comm"]["control"]["calls"];
         calls = calls.get<Index>() + 1;
         return Expected{0, std::string::npos, {}, "under comm"};
       }},
      {Kind::traffic_summary, "summary.json counts bytes of generating that nobody sent", kAll,
       [](LoggedRun& run) {
         run.summary["generation_comm"]["broadcast"] = {
             {"calls", 1}, {"elements", 1}, {"bytes_sent", 2}};
         return Expected{0, std::string::npos, {}, "under generation_comm"};
       }},
  };
  return all;
}

std::vector<Tampering> tamperings() {
  std::vector<Tampering> all;
  for (const auto* some : {&of_lines(), &of_parameters(), &of_gradients(), &of_memory_and_steps(),
                           &of_collectives()}) {
    all.insert(all.end(), some->begin(), some->end());
  }
  return all;
}

std::set<std::string> names(const std::set<Kind>& kinds) {
  std::set<std::string> result;
  for (const Kind kind : kinds) result.emplace(verify::info(kind).name);
  return result;
}

verify::Verdict verdict_on(const LoggedRun& run) {
  const TemporaryFolder folder;
  run.write(folder.path());
  return verify::replay(log::read_run_folder(folder.path()));
}

TEST_CASE("every tampering with a good log is found as what it is and where it is", "[verify]") {
  for (const int stage : kAll) {
    const LoggedRun good = good_run(stage);
    CHECK(verdict_on(good).violations.empty());
    for (const Tampering& tampering : tamperings()) {
      if (std::count(tampering.stages.begin(), tampering.stages.end(), stage) == 0) continue;
      INFO("stage " << stage << ": " << tampering.what);
      LoggedRun run = good;
      const Expected expected = tampering.plant(run);
      const verify::Verdict verdict = verdict_on(run);
      std::set<Kind> found;
      for (const auto& [kind, first] : verdict.violations) {
        found.insert(kind);
        UNSCOPED_INFO(verify::info(kind).name << " " << first.file << ":" << first.line << " "
                                              << first.text);
      }
      std::set<Kind> wanted(expected.others.begin(), expected.others.end());
      wanted.insert(tampering.kind);
      CHECK(names(found) == names(wanted));
      const auto first = verdict.violations.find(tampering.kind);
      if (first == verdict.violations.end()) continue;
      CHECK(first->second.line == expected.line + 1);
      if (first->second.line > 0) {
        CHECK(first->second.file == fmt::format("rank{}.events.jsonl", expected.rank));
      }
      CHECK(first->second.text.find(expected.says) != std::string::npos);
    }
  }
}

TEST_CASE("every kind of violation has a tampering", "[verify]") {
  std::set<Kind> planted, known;
  for (const Tampering& tampering : tamperings()) planted.insert(tampering.kind);
  for (const verify::KindInfo& info : verify::all_kinds()) known.insert(info.kind);
  CHECK(names(planted) == names(known));
}

TEST_CASE("more violations of a kind are counted", "[verify]") {
  LoggedRun run = good_run(3);
  for (std::size_t i = 0; i < 5; ++i) {
    run.change(1, i, [](Json& event) { event["rank"] = 0; });
  }
  const verify::Verdict verdict = verdict_on(run);
  REQUIRE(verdict.violations.count(Kind::other_rank) == 1);
  CHECK(verdict.violations.at(Kind::other_rank).line == 1);
  CHECK(verdict.violations.at(Kind::other_rank).more == 4);
}

}  // namespace
}  // namespace zerolab::test
