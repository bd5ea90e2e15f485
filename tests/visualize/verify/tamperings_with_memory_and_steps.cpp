#include "tests/visualize/verify/tamperings.hpp"

namespace zerolab::test {

using verify::Kind;
using Json = LoggedRun::Json;

std::vector<Tampering> tamperings_with_memory_and_steps() {
  return {
      {Kind::live_bytes, "live is four bytes too many", kAllStages,
       [](LoggedRun& run) {
         const std::size_t line = run.find_last(1, {{"ev", "free"}, {"phase", "backward"}});
         run.change(1, line, [](Json& event) { event["live"] = event["live"].get<Index>() + 4; });
         return Expected{1, line};
       }},
      {Kind::live_bytes, "a free of more bytes than were allocated", kAllStages,
       [](LoggedRun& run) {
         const std::size_t line = run.find_last(1, {{"ev", "free"}, {"phase", "backward"}});
         run.change(1, line, [](Json& event) { event["bytes"] = event["bytes"].get<Index>() + 4; });
         return Expected{1, line, {Kind::free_of_nothing, Kind::never_freed, Kind::memory_summary}};
       }},
      {Kind::peak_bytes, "the peak is four bytes too many", kAllStages,
       [](LoggedRun& run) {
         const std::size_t line = run.find_last(1, {{"ev", "free"}});
         run.change(1, line, [](Json& event) { event["peak"] = event["peak"].get<Index>() + 4; });
         return Expected{1, line};
       }},
      {Kind::free_of_nothing, "a free by another owner", kAllStages,
       [](LoggedRun& run) {
         const std::size_t line = run.find(1, {{"ev", "free"}, {"category", "activations"}});
         run.change(1, line, [](Json& event) { event["owner"] = "nobody"; });
         return Expected{1, line, {Kind::never_freed, Kind::memory_summary}};
       }},
      {Kind::over_budget, "a budget that is one byte too small", kAllStages,
       [](LoggedRun& run) {
         const Json peak = run.event(0, run.logs[0].size() - 1)["peak"];
         run.run["device_memory"] = peak.get<Index>() - 1;
         return Expected{0, run.find(0, {{"live", peak}})};
       }},
      {Kind::never_freed, "the last free is missing", kAllStages,
       [](LoggedRun& run) {
         Json taken = run.event(1, run.logs[1].size() - 1);
         run.logs[1].pop_back();
         taken["ev"] = "alloc";
         return Expected{1, run.find(1, {{"ev", "alloc"}, {"owner", taken["owner"]}})};
       }},
      {Kind::memory_summary, "steady memory that the log does not have", kAllStages,
       [](LoggedRun& run) {
         Json& bytes = run.summary["memory"][1]["device"]["steady"]["gradients"];
         bytes = bytes.get<Index>() + 8;
         return Expected{1, std::string::npos, {}, "as steady of rank 1"};
       }},
      {Kind::memory_summary, "a peak that the log does not have", kAllStages,
       [](LoggedRun& run) {
         run.summary["memory"][2]["device"]["category_peak"]["optimizer"] = 0;
         return Expected{2, std::string::npos, {}, "0 bytes of optimizer as category_peak"};
       }},
      {Kind::step_order, "a step is told twice", kAllStages,
       [](LoggedRun& run) {
         const std::size_t line = run.find(1, {{"ev", "step"}, {"step", 2}});
         run.insert(1, line, run.event(1, line));
         return Expected{1, line + 1, {Kind::not_reduced}};
       }},
      {Kind::step_of_ranks, "ranks have different losses", kAllStages,
       [](LoggedRun& run) {
         const std::size_t line = run.find(1, {{"ev", "step"}, {"step", 2}});
         run.change(1, line,
                    [](Json& event) { event["loss"] = event["loss"].get<double>() + 1e-9; });
         return Expected{1, line, {}, "the loss of step 2"};
       }},
      {Kind::step_of_ranks, "ranks have different hashes", kAllStages,
       [](LoggedRun& run) {
         const std::size_t line = run.find(2, {{"ev", "step"}});
         run.change(2, line, [](Json& event) { event["hash"] = "0123456789abcdef"; });
         return Expected{2, line, {}, "the hash of step 1 is 0123456789abcdef"};
       }},
      {Kind::step_summary, "summary.json has another gradient norm", kAllStages,
       [](LoggedRun& run) {
         run.summary["steps"][1]["grad_norm"] = nullptr;
         return Expected{0, run.find(0, {{"ev", "step"}, {"step", 2}}), {}, "has null"};
       }},
  };
}

}  // namespace zerolab::test
