#include "tests/visualize/verify/tamperings.hpp"

namespace zerolab::test {

using verify::Kind;
using Json = LoggedRun::Json;

std::vector<Tampering> tamperings_with_lines() {
  return {
      {Kind::unreadable_line, "a line is no JSON", kAllStages,
       [](LoggedRun& run) {
         const std::size_t line = run.find(1, {{"ev", "span"}});
         run.logs[1][line] += "}";
         return Expected{1, line, {Kind::sequence}, "is not JSON"};
       }},
      {Kind::unreadable_line, "an event of an unknown kind", kAllStages,
       [](LoggedRun& run) {
         const std::size_t line = run.find(1, {{"ev", "span"}});
         run.change(1, line, [](Json& event) { event["ev"] = "spam"; });
         return Expected{1, line, {Kind::sequence}, "no kind of event"};
       }},
      {Kind::sequence, "a line is missing", kAllStages,
       [](LoggedRun& run) {
         const std::size_t line = run.find(2, {{"ev", "span"}});
         run.logs[2].erase(run.logs[2].begin() + static_cast<std::ptrdiff_t>(line));
         return Expected{2, line};
       }},
      {Kind::other_rank, "a line of another rank", kAllStages,
       [](LoggedRun& run) {
         run.change(1, 20, [](Json& event) { event["rank"] = 2; });
         return Expected{1, 20};
       }},
      {Kind::going_back, "time goes back", kAllStages,
       [](LoggedRun& run) {
         const std::size_t line = run.find(1, {{"ev", "free"}, {"phase", "backward"}});
         run.change(1, line, [](Json& event) { event["t"] = -1e9; });
         return Expected{1, line};
       }},
      {Kind::going_back, "micro-steps go back", kAllStages,
       [](LoggedRun& run) {
         const std::size_t line = run.find(1, {{"ev", "free"}, {"micro_step", 1}});
         run.change(1, line, [](Json& event) { event["micro_step"] = 0; });
         return Expected{1, line, {}, "micro-step 0 after"};
       }},
      {Kind::going_back, "a module ends before it begins", kAllStages,
       [](LoggedRun& run) {
         const std::size_t line = run.find(1, {{"ev", "span"}, {"module", "gelus.0"}});
         run.change(1, line, [](Json& event) { event["start"] = event["t"].get<double>() + 5; });
         return Expected{1, line};
       }},
      {Kind::missing_file, "a rank's log is missing", kAllStages,
       [](LoggedRun& run) {
         run.logs[2].clear();
         return Expected{2, std::string::npos};
       }},
      {Kind::ends_early, "a log of a whole run is cut in the middle of a line", kAllStages,
       [](LoggedRun& run) {
         run.cut = run.logs[1][200].substr(0, 40);
         run.logs[1].resize(200);
         return Expected{1, 200};
       }},
      {Kind::ends_early, "a log of a whole run lacks its last step", kAllStages,
       [](LoggedRun& run) {
         const std::size_t step = run.find(1, {{"ev", "step"}, {"step", 2}});
         run.logs[1].resize(step);
         return Expected{1, step - 1};
       }},
      {Kind::unknown_name, "a span of a module that there is not", kAllStages,
       [](LoggedRun& run) {
         const std::size_t line = run.find(0, {{"ev", "span"}, {"module", "layers.1"}});
         run.change(0, line, [](Json& event) { event["module"] = "layers.11"; });
         return Expected{0, line};
       }},
      {Kind::unknown_name, "a gradient of a parameter that there is not", kAllStages,
       [](LoggedRun& run) {
         const std::size_t line = run.find_last(0, gradient("partial"));
         run.change(0, line, [](Json& event) { event["parameter"] = "?"; });
         return Expected{0, line, {Kind::missing_gradient_transition}};
       }},
  };
}

}  // namespace zerolab::test
