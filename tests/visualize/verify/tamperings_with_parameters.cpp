#include <fmt/format.h>

#include "tests/visualize/verify/tamperings.hpp"

namespace zerolab::test {

using verify::Kind;
using Json = LoggedRun::Json;

std::vector<Tampering> tamperings_with_parameters() {
  return {
      {Kind::declared_moves, "run.json declares a move that no stage makes", kAllStages,
       [](LoggedRun& run) {
         run.run["state_machine"]["parameter"].push_back(
             {{"from", "INFLIGHT"}, {"to", "NOT_AVAILABLE"}, {"cause", "release"}});
         return Expected{0, std::string::npos, {}, "INFLIGHT to NOT_AVAILABLE by release"};
       }},
      {Kind::declared_moves, "run.json declares a move of a gradient that none makes", kAllStages,
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
         const std::size_t line = run.find(0, gather());
         erase_everywhere(run, gather());
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
         const std::size_t line = run.find(1, gather());
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
         const std::size_t line = run.find_last(1, parameter("NOT_AVAILABLE"), next);
         run.erase(1, line);
         const std::size_t gathered = run.find_last(1, parameter("AVAILABLE"), line);
         return Expected{1, gathered, {Kind::missing_transition}, "when the next pass begins"};
       }},
      {Kind::step_ends_gathered,
       "a step ends with something gathered",
       {3},
       [](LoggedRun& run) {
         const std::size_t end = run.find(1, {{"ev", "step"}});
         run.erase(1, run.find_last(1, parameter("NOT_AVAILABLE"), end));
         return Expected{1, run.find(1, {{"ev", "step"}}), {Kind::missing_transition}};
       }},
  };
}

}  // namespace zerolab::test
