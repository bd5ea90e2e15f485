#include <stdexcept>

#include "tests/visualize/verify/tamperings.hpp"

namespace zerolab::test {

using verify::Kind;
using Json = LoggedRun::Json;

std::vector<Tampering> tamperings_with_gradients() {
  return {
      {Kind::missing_gradient_transition, "a gradient is ready without a word", kAllStages,
       [](LoggedRun& run) {
         const std::size_t line = run.find(1, gradient("ready"));
         run.erase(1, line);
         return Expected{1, run.find(1, gradient("reducing"))};
       }},
      {Kind::illegal_gradient_transition, "a gradient is reduced before it is ready", kAllStages,
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
      {Kind::reduced_without_collective, "a gradient is reduced without a collective", kAllStages,
       [](LoggedRun& run) {
         erase_everywhere(run, reduction(run));
         return Expected{0, run.find(0, gradient("reduced")), {Kind::traffic_summary}};
       }},
      {Kind::reduced_too_early, "a gradient is reduced before its collective has finished",
       kAllStages,
       [](LoggedRun& run) {
         const std::size_t there = run.find(1, gradient("reduced"));
         const double t = run.event(1, there)["t"];
         run.change(1, run.find(1, reduction(run)),
                    [&](Json& event) { event["finished"] = t + 1; });
         return Expected{1, there, {Kind::collective_times}};
       }},
      {Kind::not_reduced, "a gradient is not reduced in a step", kAllStages,
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
}

}  // namespace zerolab::test
