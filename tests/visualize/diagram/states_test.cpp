#include "visualize/diagram/states.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <regex>
#include <tuple>

#include "tests/support/catch.hpp"
#include "tests/support/golden.hpp"
#include "tests/support/thrown.hpp"
#include "tests/support/written_run.hpp"
#include "tests/support/xml.hpp"
#include "visualize/diagram/render.hpp"

namespace zerolab::test {
namespace {

using diagram::Machine;
using diagram::Observed;
using diagram::Transition;
using Json = LoggedRun::Json;

constexpr diagram::StatesOptions kWithoutTimes{.times = false};

Observed observed(const LoggedRun& run, const diagram::Selection& selection = std::nullopt) {
  Observed result = diagram::observe(WrittenRun(run).run, selection);
  result.name = "a run";  // not where the test happened to write it
  return result;
}

log::Count moves_in(const Machine& machine) {
  log::Count sum = 0;
  for (const Transition& each : machine.transitions) sum += each.count;
  return sum;
}

const Transition& find(const Machine& machine, const std::string& from, const std::string& to,
                       const std::string& cause) {
  const auto found = std::find_if(machine.transitions.begin(), machine.transitions.end(),
                                  [&](const Transition& each) {
                                    return machine.states[each.from] == from &&
                                           machine.states[each.to] == to && each.cause == cause;
                                  });
  if (found == machine.transitions.end()) throw std::runtime_error("no such transition");
  return *found;
}

/// As a page reads it: libgvc writes "-" as "&#45;".
std::string drawn(const std::string& dot) {
  std::string svg = diagram::render(dot, "svg");
  CHECK(fault_in_xml(svg) == "");
  for (std::size_t at = svg.find("&#45;"); at != std::string::npos; at = svg.find("&#45;", at)) {
    svg.replace(at, 5, "-");
  }
  return svg;
}

int count_in(const std::string& text, const std::string& part) {
  int count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
    ++count;
  }
  return count;
}

TEST_CASE("the states of a fixed run of each stage are drawn as the golden graphs", "[diagram]") {
  for (const int stage : {0, 1, 2, 3}) {
    const std::string dot = states_dot(observed(run_of_stage(stage)), kWithoutTimes);
    CHECK(difference_from_golden(dot, fmt::format("states-stage{}.dot", stage)) == "");
  }
}

TEST_CASE("what a stage declares and a run leaves out is drawn in grey with the spec",
          "[diagram]") {
  for (const int stage : {0, 3}) {
    const std::string dot =
        states_dot(observed(run_of_stage(stage)), {.spec = true, .times = false});
    CHECK(difference_from_golden(dot, fmt::format("spec-stage{}.dot", stage)) == "");
  }
}

TEST_CASE("two runs in one graph show what only one of them does", "[diagram]") {
  const Observed second = observed(run_of_stage(2)), third = observed(run_of_stage(3));
  const std::string dot = states_diff_dot(second, third, kWithoutTimes);
  CHECK(difference_from_golden(dot, "diff-stage2-stage3.dot") == "");
  CHECK(contains(dot, "class=\"move only-first\""));
  CHECK(contains(dot, "class=\"move only-second\""));
  const std::string same = states_diff_dot(third, third, kWithoutTimes);
  CHECK_FALSE(contains(same, "class=\"move only-"));
}

TEST_CASE("every move that was observed is declared, in every stage and model", "[diagram]") {
  for (const NamedTraining& named : small_trainings()) {
    for (const int stage : {0, 1, 2, 3}) {
      Training training = named.training(stage);
      training.steps = 2;
      const LoggedRun run = logged_run(4, training);
      std::set<std::tuple<std::string, std::string, std::string>> declared;
      for (const Json& move : run.run["state_machine"]["parameter"]) {
        declared.insert({move["from"].get<std::string>(), move["to"].get<std::string>(),
                         move["cause"].get<std::string>()});
      }
      for (const Json& move : run.run["state_machine"]["gradient"]) {
        declared.insert({move["from"].get<std::string>(), move["to"].get<std::string>(), ""});
      }
      const Observed seen = observed(run);
      std::size_t made = 0;
      for (const Machine* machine : {&seen.parameters, &seen.gradients}) {
        for (const Transition& each : machine->transitions) {
          if (each.count == 0) continue;
          ++made;
          INFO(named.name << " in stage " << stage << ": " << machine->states[each.from] << " to "
                          << machine->states[each.to] << " by " << each.cause);
          CHECK(each.legal);
          CHECK(declared.count(
                    {machine->states[each.from], machine->states[each.to], each.cause}) == 1);
        }
      }
      CHECK(made >= 5);
      CHECK(seen.remarks.empty());
    }
  }
}

TEST_CASE("the counts on the arrows are those of the log, and parameters add up to all",
          "[diagram]") {
  const LoggedRun run = run_of_stage(3);
  log::Count moves = 0, gradient_moves = 0;
  for (const auto& lines : run.logs) {
    for (const std::string& line : lines) {
      moves += contains(line, "\"ev\":\"param\"");
      gradient_moves += contains(line, "\"ev\":\"grad\"");
    }
  }
  const Observed all = observed(run);
  CHECK(moves_in(all.parameters) == moves);
  CHECK(moves_in(all.gradients) == gradient_moves);
  log::Count one_by_one = 0;
  for (const Json& parameter : run.run["parameters"]) {
    one_by_one += moves_in(observed(run, std::set<std::string>{parameter["name"]}).parameters);
  }
  CHECK(one_by_one == moves);
}

TEST_CASE("a time on an arrow is the mean time in the state before", "[diagram]") {
  LoggedRun run = run_of_stage(1, 1);
  run.logs[0] = {
      R"({"t":10,"rank":0,"seq":0,"step":0,"micro_step":0,"phase":"set_up","ev":"param","parameter":"a","from":"NOT_AVAILABLE","to":"AVAILABLE","cause":"set_up","module":"","active":0})",
      R"({"t":30,"rank":0,"seq":1,"step":1,"micro_step":0,"phase":"publish","ev":"param","parameter":"a","from":"AVAILABLE","to":"INFLIGHT","cause":"publish","module":"","active":0})",
      R"({"t":37.5,"rank":0,"seq":2,"step":1,"micro_step":0,"phase":"publish","ev":"param","parameter":"a","from":"INFLIGHT","to":"AVAILABLE","cause":"publish","module":"","active":0})",
      R"({"t":47.5,"rank":0,"seq":3,"step":2,"micro_step":0,"phase":"publish","ev":"param","parameter":"a","from":"AVAILABLE","to":"INFLIGHT","cause":"publish","module":"","active":0})"};
  const Machine machine = observed(run).parameters;
  CHECK_FALSE(find(machine, "NOT_AVAILABLE", "AVAILABLE", "set_up").mean_time().has_value());
  CHECK(find(machine, "AVAILABLE", "INFLIGHT", "publish").mean_time() == 15);
  CHECK(find(machine, "INFLIGHT", "AVAILABLE", "publish").mean_time() == 7.5);
  CHECK(machine.time == std::vector<double>{0, 7.5, 30});
}

TEST_CASE("moves that no stage makes are red, and so is the gap that a missing line leaves",
          "[diagram]") {
  const LoggedRun good = run_of_stage(3);
  CHECK_FALSE(contains(states_dot(observed(good)), "illegal"));

  LoggedRun run = good;
  const std::size_t line = run.find(1, {{"ev", "param"}, {"cause", "release"}});
  run.change(1, line, [](Json& event) { event["from"] = "INFLIGHT"; });
  const Observed early = observed(run);
  const Transition& release = find(early.parameters, "INFLIGHT", "NOT_AVAILABLE", "release");
  CHECK(release.count == 1);
  CHECK_FALSE(release.legal);
  const std::string dot = states_dot(early);
  CHECK(contains(dot,
                 "[id=\"edge-INFLIGHT-NOT_AVAILABLE-illegal\", class=\"move illegal\", "
                 "color=\"#C1121F\""));

  run = good;
  run.erase(2, run.find(2, {{"ev", "param"}, {"to", "AVAILABLE"}}));
  const Transition& gap = find(observed(run).parameters, "INFLIGHT", "AVAILABLE", diagram::kGap);
  CHECK(gap.count == 1);
  CHECK_FALSE(gap.legal);

  run = good;
  run.change(0, run.find(0, {{"ev", "grad"}, {"to", "ready"}}),
             [](Json& event) { event["to"] = "freed"; });
  CHECK(contains(states_dot(observed(run)), "gradient-edge-partial-freed-illegal"));
}

/// A log with every move that the words of the log allow, and few that a stage makes.
LoggedRun run_with_every_move() {
  LoggedRun run = run_of_stage(3, 1);
  const std::size_t line = run.find(0, {{"ev", "param"}});
  const Json move = run.event(0, line);
  for (const std::string_view from : log::kWords<log::Status>) {
    for (const std::string_view to : log::kWords<log::Status>) {
      for (const std::string_view cause : log::kWords<log::Cause>) {
        Json odd = move;
        odd["from"] = from;
        odd["to"] = to;
        odd["cause"] = cause;
        run.logs[0].push_back(odd.dump());
      }
    }
  }
  Json grad = run.event(0, run.find(0, {{"ev", "grad"}}));
  for (const std::string_view from : log::kWords<log::GradientStatus>) {
    for (const std::string_view to : log::kWords<log::GradientStatus>) {
      grad["from"] = from;
      grad["to"] = to;
      run.logs[0].push_back(grad.dump());
    }
  }
  return run;
}

TEST_CASE("every move that a log can tell is drawn, from a state to itself too", "[diagram]") {
  const Observed seen = observed(run_with_every_move());
  for (const std::string& dot : {states_dot(seen), states_diff_dot(seen, seen),
                                 states_diff_dot(observed(run_of_stage(0)), seen)}) {
    const std::string svg = drawn(dot);
    CHECK(contains(svg, "id=\"edge-INFLIGHT-INFLIGHT-illegal\""));
    CHECK(contains(svg, "id=\"gradient-edge-freed-none-illegal\""));
  }
}

// "3× | –" on an arrow as ("3", "–"), sorted.
std::vector<std::pair<std::string, std::string>> counts_in(const std::string& dot, bool swapped) {
  const std::regex pair("([0-9,]+|\u2013)(?:\u00D7)? \\| ([0-9,]+|\u2013)");
  std::vector<std::pair<std::string, std::string>> counts;
  for (std::sregex_iterator found(dot.begin(), dot.end(), pair), end; found != end; ++found) {
    counts.emplace_back((*found)[swapped ? 2 : 1], (*found)[swapped ? 1 : 2]);
  }
  std::sort(counts.begin(), counts.end());
  return counts;
}

TEST_CASE("two runs beside each other have the same counts whichever comes first", "[diagram]") {
  const Observed plain = observed(run_of_stage(0));
  const Observed odd = observed(run_with_every_move());
  const auto counts = counts_in(states_diff_dot(plain, odd), false);
  CHECK(counts.size() > 40);
  CHECK(counts_in(states_diff_dot(odd, plain), true) == counts);
}

TEST_CASE("a log that ends in the middle of a line is drawn, with a note", "[diagram]") {
  LoggedRun run = run_of_stage(3);
  run.summary = nullptr;
  run.logs[1].resize(run.logs[1].size() / 2);
  run.cut = R"({"t":1,"rank":1,"se)";
  run.logs[2].clear();
  run.logs[0][3] = "nonsense";
  const Observed seen = observed(run);
  CHECK(seen.remarks ==
        std::vector<std::string>{
            "rank0.events.jsonl has 1 line(s) that cannot be read",
            fmt::format("rank1.events.jsonl ends in the middle of line {}", run.logs[1].size() + 1),
            "there is no log of rank 2", "the run did not end: there is no summary.json"});
  const std::string svg = drawn(states_dot(seen));
  for (const std::string& remark : seen.remarks) CHECK(contains(svg, "note: " + remark));
}

TEST_CASE("a run without events of states is refused", "[diagram]") {
  LoggedRun run = run_of_stage(0);
  for (auto& lines : run.logs) {
    std::erase_if(lines,
                  [](const std::string& line) { return !contains(line, "\"ev\":\"step\""); });
  }
  CHECK_THROWS_AS(observed(run), log::Unreadable);
}

TEST_CASE("runs stand below each other, each with ids of its own", "[diagram]") {
  std::vector<Observed> runs{observed(run_of_stage(1)), observed(run_of_stage(3))};
  const std::string dot = states_dot(runs, kWithoutTimes);
  CHECK(count_in(dot, "subgraph ") == 4);
  CHECK(contains(dot, "id=\"run0-state-INFLIGHT\""));
  CHECK(contains(dot, "id=\"run1-edge-NOT_AVAILABLE-INFLIGHT\""));
  CHECK(dot.find("stage 3, 3 ranks") < dot.find("stage 1, 3 ranks"));  // from below
  CHECK(contains(drawn(dot), "id=\"run1-gradient-freed\""));
}

TEST_CASE("where states stand depends on nothing that happened", "[diagram]") {
  // Each run does other things; NOT_AVAILABLE, INFLIGHT, AVAILABLE stand from left to right in all.
  for (const LoggedRun& run :
       {run_of_stage(0), run_of_stage(1), run_of_stage(3), run_with_every_move()}) {
    const std::string svg = drawn(states_dot(observed(run)));
    double last = -1;
    for (const std::string state : {"NOT_AVAILABLE", "INFLIGHT", "AVAILABLE"}) {
      const std::size_t node = svg.find("<g id=\"state-" + state + "\"");
      REQUIRE(node != std::string::npos);
      const std::size_t x = svg.find("x=\"", node) + 3;
      const double here = std::stod(svg.substr(x));
      CHECK(here > last);
      last = here;
    }
  }
}

}  // namespace
}  // namespace zerolab::test
