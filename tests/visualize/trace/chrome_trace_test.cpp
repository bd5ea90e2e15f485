// The trace against the rules of its format: "Trace Event Format" of the Chromium project.
#include "visualize/trace/chrome_trace.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <sstream>

#include "tests/support/catch.hpp"
#include "tests/support/thrown.hpp"
#include "tests/support/written_run.hpp"

namespace zerolab::test {
namespace {

using Json = nlohmann::json;

struct Trace {
  Json events;
  std::vector<std::string> remarks;
};

Trace trace_of(const LoggedRun& logged) {
  const WrittenRun written(logged);
  std::ostringstream out;
  Trace trace;
  trace.remarks = trace::write_chrome_trace(written.run, out);
  trace.events = Json::parse(out.str())["traceEvents"];
  return trace;
}

/// Nanoseconds, which is what a trace is exact to.
long long ns(const Json& microseconds) { return std::llround(microseconds.get<double>() * 1e3); }

/// What breaks the rules, the first few; empty if nothing does.
std::vector<std::string> faults_in(const Json& events) {
  std::vector<std::string> faults;
  using Lane = std::pair<Json, Json>;  // pid, tid
  std::map<Lane, long long> last;
  std::map<Lane, std::vector<long long>> open;  // ends of slices
  std::map<Json, std::string> flows;            // phases by id, in the order of time
  std::map<Json, std::map<char, long long>> flow_times;
  const std::map<std::string, std::vector<const char*>> needs{
      {"X", {"name", "cat", "ts", "dur", "pid", "tid"}},
      {"M", {"name", "pid", "args"}},
      {"C", {"name", "ts", "pid", "args"}},
      {"i", {"name", "ts", "pid", "tid", "s"}},
      {"s", {"name", "cat", "id", "ts", "pid", "tid"}},
      {"t", {"name", "cat", "id", "ts", "pid", "tid"}},
      {"f", {"name", "cat", "id", "ts", "pid", "tid", "bp"}}};
  for (const Json& event : events) {
    const auto fault = [&](const std::string& what) {
      faults.push_back(what + ": " + event.dump());
    };
    const std::string kind = event.value("ph", "none");
    if (needs.count(kind) == 0) {
      fault("an unknown phase");
      continue;
    }
    for (const char* field : needs.at(kind)) {
      if (!event.contains(field)) fault(fmt::format("no {}", field));
    }
    if (kind == "M") continue;
    if (event["ts"] < 0) fault("a time below 0");
    if (kind == "C") {
      for (const auto& [name, value] : event["args"].items()) {
        if (!value.is_number()) fault("no number");
      }
    }
    const Lane lane{event["pid"], kind == "C" ? event["name"] : event["tid"]};
    const long long t = ns(event["ts"]);
    if (last.count(lane) > 0 && t < last[lane]) fault("a time that goes back");
    last[lane] = t;
    if (kind == "X") {
      const long long end = t + ns(event["dur"]);
      auto& ends = open[lane];
      while (!ends.empty() && ends.back() <= t) ends.pop_back();
      if (event["dur"] < 0) fault("a length below 0");
      if (!ends.empty() && end > ends.back()) fault("a slice that ends after the one around it");
      ends.push_back(end);
    }
    if (kind == "s" || kind == "t" || kind == "f") {
      flow_times[event["id"]][kind[0]] = t;
      flows[event["id"]] += kind;
    }
  }
  for (const auto& [id, kinds] : flows) {
    const auto& at = flow_times[id];
    if (kinds.size() != 3 || at.size() != 3) {
      faults.push_back("an arrow without begin, middle or end: " + id.dump());
    } else if (at.at('s') > at.at('t') || at.at('t') > at.at('f')) {
      faults.push_back("an arrow that goes back in time: " + id.dump());
    }
  }
  constexpr std::size_t kEnough = 5;
  faults.resize(std::min(faults.size(), kEnough));
  return faults;
}

TEST_CASE("the trace of a run of each stage keeps the rules of the format", "[trace]") {
  for (const int stage : {0, 1, 2, 3}) {
    const LoggedRun logged = run_of_stage(stage, 4);
    const Trace trace = trace_of(logged);
    CHECK(faults_in(trace.events) == std::vector<std::string>{});
    CHECK(trace.remarks.empty());
    std::size_t collectives = 0, spans = 0;
    for (const auto& lines : logged.logs) {
      for (const std::string& line : lines) {
        collectives += contains(line, "\"ev\":\"comm\"");
        spans += contains(line, "\"ev\":\"span\"");
      }
    }
    std::map<std::string, std::size_t> slices;
    std::set<std::string> lanes;
    std::size_t arrows = 0;
    for (const Json& event : trace.events) {
      if (event["ph"] == "X") ++slices[event["cat"]];
      if (event["ph"] == "s") ++arrows;
      if (event["ph"] == "M" && event["args"].contains("name")) lanes.insert(event["args"]["name"]);
    }
    CHECK(slices["collective"] == collectives);
    CHECK(slices["wait"] == collectives);
    CHECK(arrows == collectives);
    CHECK(slices["module"] == spans);
    CHECK(slices["step"] == 4 * 3);  // set-up and two steps, on each rank
    CHECK(lanes == std::set<std::string>{"compute", "communication", "rank 0", "rank 1", "rank 2",
                                         "rank 3"});
  }
}

TEST_CASE("the counters of a trace end at the bytes that the log has last", "[trace]") {
  const LoggedRun logged = run_of_stage(3);
  std::map<std::pair<std::size_t, std::string>, long long> expected, counted;
  for (std::size_t rank = 0; rank < logged.logs.size(); ++rank) {
    for (std::size_t i = 0; i < logged.logs[rank].size(); ++i) {
      const auto event = logged.event(rank, i);
      if (event["ev"] != "alloc" && event["ev"] != "free") continue;
      const long long bytes = event["bytes"];
      expected[{rank, "device memory: " + event["category"].get<std::string>()}] +=
          event["ev"] == "alloc" ? bytes : -bytes;
    }
  }
  for (const Json& event : trace_of(logged).events) {
    if (event["ph"] != "C" || event["name"] == "loss") continue;
    counted[{event["pid"], event["name"]}] = event["args"]["bytes"];
  }
  CHECK(expected.size() > 12);
  CHECK(counted == expected);
}

TEST_CASE("the lanes of a trace say what ran: a wait lies between issue and use", "[trace]") {
  const Trace trace = trace_of(run_of_stage(3));
  const auto find = [&](const std::string& name) {
    for (const Json& event : trace.events) {
      if (event["ph"] == "X" && event["name"] == name) return event;
    }
    return Json();
  };
  const Json gather = find("all_gather embedding.weight");
  const Json wait = find("wait for all_gather embedding.weight");
  const Json module = find("embedding");
  REQUIRE(gather.is_object());
  REQUIRE(wait.is_object());
  REQUIRE(module.is_object());
  CHECK(gather["tid"] != wait["tid"]);
  CHECK(wait["tid"] == module["tid"]);
  CHECK(ns(gather["args"]["issued"]) <= ns(gather["ts"]));
  CHECK(ns(wait["ts"]) + ns(wait["dur"]) <= ns(module["ts"]));
}

TEST_CASE("a log that is cut, or makes no sense, still gives a trace that keeps the rules",
          "[trace]") {
  LoggedRun logged = run_of_stage(2);
  logged.summary = nullptr;
  logged.logs[1].resize(logged.logs[1].size() / 2);
  logged.cut = "{\"t\":1";
  logged.logs[2].clear();
  logged.logs[0][5] = "{}";
  Trace trace = trace_of(logged);
  CHECK(faults_in(trace.events) == std::vector<std::string>{});
  CHECK(trace.remarks ==
        std::vector<std::string>{"rank0.events.jsonl has 1 line(s) that cannot be read",
                                 fmt::format("rank1.events.jsonl ends in the middle of line {}",
                                             logged.logs[1].size() + 1),
                                 "there is no log of rank 2"});

  logged = run_of_stage(3);
  for (std::size_t i = 0; i < logged.logs[0].size(); ++i) {
    logged.change(0, i, [i](LoggedRun::Json& event) {
      const double odd = static_cast<double>((i * 7919) % 1000) - 300;
      for (const char* time : {"issued", "started", "finished", "waited", "start", "end"}) {
        if (event.contains(time)) event[time] = event[time].get<double>() + odd;
      }
      if (i % 5 == 0) event["t"] = odd;
    });
  }
  CHECK(faults_in(trace_of(logged).events) == std::vector<std::string>{});
}

TEST_CASE("a name in a trace is JSON, whatever it is, and a loss that is not finite is left out",
          "[trace]") {
  LoggedRun logged = run_of_stage(1);
  rename(logged, "layers.0", "</script>\"\\\n\x01\u2028");
  for (auto& lines : logged.logs) {
    for (std::string& line : lines) {
      const std::size_t at = line.find("\"loss\":");
      if (at == std::string::npos) continue;
      line.replace(at, line.find(',', at) - at, "\"loss\":null");
    }
  }
  const Trace trace = trace_of(logged);
  CHECK(faults_in(trace.events) == std::vector<std::string>{});
  bool found = false;
  for (const Json& event : trace.events) {
    CHECK(event["name"] != "loss");
    found = found || event["name"] == "</script>\"\\\n\x01\u2028";
  }
  CHECK(found);
}

TEST_CASE("a run without any events has no trace", "[trace]") {
  LoggedRun logged = run_of_stage(0);
  for (auto& lines : logged.logs) lines.clear();
  CHECK_THROWS_AS(trace_of(logged), log::Unreadable);
}

TEST_CASE("the check of traces finds what breaks the rules", "[trace]") {
  const Trace good = trace_of(run_of_stage(3));
  const auto broken = [&](const std::string& kind, const auto& edit) {
    Json events = good.events;
    for (std::size_t i = events.size(); i-- > 0;) {
      if (events[i]["ph"] != kind) continue;
      edit(events[i]);
      return faults_in(events).size();
    }
    return std::size_t{0};
  };
  CHECK(broken("X", [](Json& event) { event.erase("dur"), event["dur"] = -1; }) > 0);
  CHECK(broken("X", [](Json& event) { event["ts"] = 0; }) > 0);
  CHECK(broken("X", [](Json& event) { event.erase("cat"); }) > 0);
  CHECK(broken("f", [](Json& event) { event["ph"] = "B"; }) > 0);
  CHECK(broken("s", [](Json& event) { event["id"] = -1; }) > 0);
  CHECK(broken("C", [](Json& event) { event["args"]["bytes"] = nullptr; }) > 0);
}

}  // namespace
}  // namespace zerolab::test
