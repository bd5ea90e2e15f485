#include "tests/visualize/verify/tamperings.hpp"

namespace zerolab::test {

using verify::Kind;
using Json = LoggedRun::Json;

std::vector<Tampering> tamperings_with_collectives() {
  return {
      {Kind::collective_order, "a rank calls another collective", kAllStages,
       [](LoggedRun& run) {
         const std::size_t line = run.find(2, {{"ev", "comm"}, {"op", "control"}});
         run.change(2, line, [](Json& event) { event["owner"] = "something else"; });
         return Expected{2, line, {}, "on rank 0 it is control of"};
       }},
      {Kind::collective_order, "a rank calls the same with other elements", kAllStages,
       [](LoggedRun& run) {
         const std::size_t line = run.find(2, {{"ev", "comm"}, {"op", "control"}});
         run.change(2, line, [](Json& event) { event["elements"] = 1; });
         return Expected{2, line};
       }},
      {Kind::collective_order, "a rank calls one less", kAllStages,
       [](LoggedRun& run) {
         run.erase(1, run.find_last(1, {{"ev", "comm"}}));
         return Expected{1, std::string::npos, {}, "none any more"};
       }},
      {Kind::collective_bytes, "a rank sends four bytes too many", kAllStages,
       [](LoggedRun& run) {
         run.change(1, run.find(1, reduction(run)), [](Json& event) {
           event["bytes_sent"] = event["bytes_sent"].get<Index>() + 4;
         });
         return Expected{0, run.find(0, reduction(run)), {}, "theory says"};
       }},
      {Kind::collective_elements, "a reduction of more elements than there are", kAllStages,
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
         const Json any{{"op", "all_gather"}};
         change_everywhere(run, any, [](Json& event) { event["elements"] = 1; });
         return Expected{0, run.find(0, any), {Kind::collective_bytes, Kind::traffic_summary}};
       }},
      {Kind::collective_times, "a collective starts before it is issued", kAllStages,
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
         const std::size_t line = run.find(0, gather());
         change_everywhere(run, gather(), [](Json& event) { event["owner"] = "embedding.weight"; });
         return Expected{0, line, {Kind::gather_without_collective}};
       }},
      {Kind::collective_of_nothing, "a reduction of what is not on its way", kAllStages,
       [](LoggedRun& run) {
         const Json fields = reduction(run);
         const std::size_t line = run.find(0, fields);
         change_everywhere(run, fields, [](Json& event) { event["owner"] = kWeight + " .. x"; });
         return Expected{0, line, {Kind::reduced_without_collective}};
       }},
      {Kind::traffic_summary, "summary.json counts a call too many", kAllStages,
       [](LoggedRun& run) {
         Json& calls = run.summary["comm"]["control"]["calls"];
         calls = calls.get<Index>() + 1;
         return Expected{0, std::string::npos, {}, "under comm"};
       }},
      {Kind::traffic_summary, "summary.json counts bytes of generating that nobody sent",
       kAllStages,
       [](LoggedRun& run) {
         run.summary["generation_comm"]["broadcast"] = {
             {"calls", 1}, {"elements", 1}, {"bytes_sent", 2}};
         return Expected{0, std::string::npos, {}, "under generation_comm"};
       }},
  };
}

}  // namespace zerolab::test
