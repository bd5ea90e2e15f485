#include "stages/trace/recorder.hpp"

#include <fmt/format.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "tests/support/catch.hpp"

namespace zerolab {
namespace {

using nlohmann::json;

/// A stream whose text outlives it. `flushes` counts what reached the file.
struct Page {
  std::shared_ptr<std::stringbuf> text = std::make_shared<std::stringbuf>();

  std::unique_ptr<std::ostream> stream() const {
    return std::make_unique<std::ostream>(text.get());
  }
  std::vector<json> lines() const {
    std::vector<json> result;
    std::istringstream in(text->str());
    for (std::string line; std::getline(in, line);) result.push_back(json::parse(line));
    return result;
  }
};

void one_of_each(Recorder& recorder) {
  recorder.record(ParamEvent{"w", "AVAILABLE", "INFLIGHT", "publish", "layer", 2});
  recorder.record(GradEvent{"w", "none", "partial"});
  recorder.record(AllocEvent{"device", "parameters", 8, 8, 8, "w"});
  recorder.record(FreeEvent{"device", "parameters", 8, 0, 8, "w"});
  recorder.record(CommEvent{"all_gather", 4, "fp32", 12, 1.5, 2.5, 3.5, 4.5, "w"});
  recorder.record(SpanEvent{"layer", "forward", 1, 2});
  recorder.record(StepEvent{2.5, 1.25, 1, false, 0xABC, 0.003F});
  recorder.record(CheckpointEvent{"save", "ck/global_step5", 4096, 1, 0.5, 0.25, 0.125, 0.0625});
  recorder.record(NoteEvent{"hello"});
}

TEST_CASE("every event is a line of JSON with its place and its fields", "[trace]") {
  const Page page;
  {
    Recorder recorder(3, page.stream());
    recorder.start_clock();
    recorder.set_step(5, 1);
    recorder.set_phase(Phase::publish);
    one_of_each(recorder);
  }
  const auto lines = page.lines();
  REQUIRE(lines.size() == 9);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    CHECK(lines[i]["rank"] == 3);
    CHECK(lines[i]["seq"] == i);
    CHECK(lines[i]["step"] == 5);
    CHECK(lines[i]["micro_step"] == 1);
    CHECK(lines[i]["phase"] == "publish");
    CHECK(lines[i]["t"].get<double>() >= 0);
  }
  const auto without_place = [&](std::size_t i) {
    json line = lines[i];
    for (const char* key : {"t", "rank", "seq", "step", "micro_step", "phase"}) line.erase(key);
    return line;
  };
  CHECK(without_place(0) == json::parse(R"({"ev":"param","parameter":"w","from":"AVAILABLE",
      "to":"INFLIGHT","cause":"publish","module":"layer","active":2})"));
  CHECK(without_place(1) ==
        json::parse(R"({"ev":"grad","parameter":"w","from":"none","to":"partial"})"));
  CHECK(without_place(2) == json::parse(R"({"ev":"alloc","pool":"device","category":"parameters",
      "bytes":8,"live":8,"peak":8,"owner":"w"})"));
  CHECK(without_place(3) == json::parse(R"({"ev":"free","pool":"device","category":"parameters",
      "bytes":8,"live":0,"peak":8,"owner":"w"})"));
  CHECK(without_place(4) == json::parse(R"({"ev":"comm","op":"all_gather","elements":4,
      "dtype":"fp32","bytes_sent":12,"issued":1.5,"started":2.5,"finished":3.5,"waited":4.5,
      "owner":"w"})"));
  CHECK(without_place(5) ==
        json::parse(R"({"ev":"span","module":"layer","kind":"forward","start":1.0,"end":2.0})"));
  CHECK(without_place(6) ==
        json::parse(R"({"ev":"step","loss":2.5,"grad_norm":1.25,"lr":0.003,"flushed":0,"scale":1,
      "skipped":false,"hash":"0000000000000abc"})"));
  CHECK(without_place(7) == json::parse(R"({"ev":"checkpoint","action":"save",
      "path":"ck/global_step5","bytes":4096,"files":1,"seconds":0.5,"io_seconds":0.25,
      "sync_seconds":0.125,"wait_seconds":0.0625})"));
  CHECK(without_place(8) == json::parse(R"({"ev":"note","text":"hello"})"));
}

TEST_CASE("all times of an event before the clock's start are on the clock that counts",
          "[trace]") {
  const Page page;
  Recorder recorder(0, page.stream());
  std::this_thread::sleep_for(std::chrono::milliseconds(2));
  const double now = recorder.microseconds(Recorder::Clock::now());
  recorder.record(
      CommEvent{"barrier", 0, "bytes", 0, now - 400, now - 300, now - 200, now - 100, "x"});
  recorder.record(SpanEvent{"layer", "forward", now - 50, now});
  recorder.start_clock();
  recorder.flush();
  const auto lines = page.lines();
  REQUIRE(lines.size() == 2);
  const auto at = [&](std::size_t line, const char* name) {
    return lines[line][name].get<double>();
  };
  CHECK(at(0, "t") < 0);
  CHECK(at(0, "waited") <= at(0, "t") - 99);
  CHECK(at(0, "finished") < at(0, "waited") - 99);
  CHECK(at(0, "started") < at(0, "finished") - 99);
  CHECK(at(0, "issued") < at(0, "started") - 99);
  CHECK(lines[0]["owner"] == "x");
  CHECK(at(1, "end") <= at(1, "t") + 0.1);
  CHECK(at(1, "start") < at(1, "end") - 49);
}

TEST_CASE("hostile names come back as they were", "[trace]") {
  const std::vector<std::string> names = {"\"",     "\\",   "a\nb", std::string("nul\0byte", 8),
                                          "\t\x01", "{}",   "{0}",  "größe",
                                          "\u2028", "\x7f", ""};
  const Page page;
  {
    Recorder recorder(0, page.stream());
    for (const std::string& name : names) recorder.record(NoteEvent{name});
    recorder.record(ParamEvent{"\"w\"", "A", "B", "c", "\\m", 0});
    recorder.record(AllocEvent{"device", "parameters", 1, 1, 1, "o\"wner"});
    recorder.record(SpanEvent{"module\n", "forward", 0, 0});
    recorder.record(CommEvent{"all_gather", 0, "fp32", 0, 0, 0, 0, 0, "\"owner"});
    recorder.record(NoteEvent{"not UTF-8: \xff"});
  }
  const auto lines = page.lines();
  REQUIRE(lines.size() == names.size() + 5);
  for (std::size_t i = 0; i < names.size(); ++i) CHECK(lines[i]["text"] == names[i]);
  CHECK(lines[names.size()]["parameter"] == "\"w\"");
  CHECK(lines[names.size()]["module"] == "\\m");
  CHECK(lines[names.size() + 1]["owner"] == "o\"wner");
  CHECK(lines[names.size() + 2]["module"] == "module\n");
  CHECK(lines[names.size() + 3]["owner"] == "\"owner");
}

TEST_CASE("numbers that JSON does not have are null, others keep every bit", "[trace]") {
  const Page page;
  {
    Recorder recorder(0, page.stream());
    recorder.record(StepEvent{std::numeric_limits<double>::quiet_NaN(),
                              std::numeric_limits<double>::infinity(), 1e300, true, ~0ULL});
    recorder.record(StepEvent{0.1 + 0.2, 5e-324, 65536, false, 0});
  }
  const auto lines = page.lines();
  CHECK(lines[0]["loss"].is_null());
  CHECK(lines[0]["grad_norm"].is_null());
  CHECK(lines[0]["scale"] == 1e300);
  CHECK(lines[0]["skipped"] == true);
  CHECK(lines[0]["hash"] == "ffffffffffffffff");
  CHECK(lines[1]["loss"] == 0.1 + 0.2);
  CHECK(lines[1]["grad_norm"] == 5e-324);
}

TEST_CASE("what happened before the clock started has a negative time, in order", "[trace]") {
  const Page page;
  {
    Recorder recorder(0, page.stream());
    recorder.record(NoteEvent{"early"});
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    recorder.record(NoteEvent{"later"});
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    recorder.start_clock();
    recorder.record(NoteEvent{"running"});
  }
  const auto lines = page.lines();
  REQUIRE(lines.size() == 3);
  CHECK(lines[0]["t"].get<double>() <= -4000);
  CHECK(lines[1]["t"].get<double>() <= -2000);
  CHECK(lines[0]["t"].get<double>() < lines[1]["t"].get<double>());
  CHECK(lines[2]["t"].get<double>() >= 0);
  CHECK((lines[0]["seq"] == 0 && lines[1]["seq"] == 1 && lines[2]["seq"] == 2));
}

TEST_CASE("a failure before the clock started loses no event", "[trace]") {
  const Page page;
  Recorder recorder(0, page.stream());
  recorder.record(NoteEvent{"early"});
  recorder.flush();
  REQUIRE(page.lines().size() == 1);
  recorder.record(NoteEvent{"after"});
  recorder.flush();
  CHECK(page.lines().size() == 2);
}

TEST_CASE("lines wait in memory until a flush, and are never flushed twice", "[trace]") {
  const Page page;
  Recorder recorder(0, page.stream());
  recorder.start_clock();
  recorder.record(NoteEvent{"one"});
  CHECK(page.lines().empty());
  recorder.flush();
  recorder.flush();
  CHECK(page.lines().size() == 1);
}

TEST_CASE("what a step recorded is written when it ends, lest a killed process take it along",
          "[trace]") {
  const Page page;
  Recorder recorder(0, page.stream());
  recorder.start_clock();
  recorder.record(NoteEvent{"one"});
  recorder.record(StepEvent{});
  CHECK(page.lines().size() == 2);
}

TEST_CASE("a recorder says where its rank is, down to the innermost module that runs", "[trace]") {
  Recorder recorder(0);
  CHECK(recorder.where() == "set_up");
  recorder.set_step(3, 1);
  recorder.set_phase(Phase::backward);
  recorder.begin_module("block");
  recorder.begin_module("block.head");
  CHECK(recorder.where() == "step 3, micro-step 1, backward of 'block.head'");
  recorder.end_module();
  CHECK(recorder.where() == "step 3, micro-step 1, backward of 'block'");
  recorder.end_all_modules();
  recorder.set_phase(Phase::step);
  CHECK(recorder.where() == "step 3, optimizer");
}

TEST_CASE("observers see every event at its place, with and without a stream", "[trace]") {
  Recorder silent(1);
  CHECK_FALSE(silent.active());
  std::vector<std::string> seen;
  silent.observe([&](const Stamp& stamp, const Event& event) {
    seen.push_back(fmt::format("{} {} {} {}", stamp.rank, stamp.seq, stamp.step,
                               std::get<NoteEvent>(event).text));
  });
  CHECK(silent.active());
  silent.set_step(4, 0);
  silent.record(NoteEvent{"a"});
  silent.record(NoteEvent{"b"});
  CHECK(seen == std::vector<std::string>{"1 0 4 a", "1 1 4 b"});
}

TEST_CASE("times are on the recorder's own clock", "[trace]") {
  Recorder recorder(0);
  recorder.start_clock();
  const auto now = Recorder::Clock::now();
  const double before = recorder.microseconds(now);
  CHECK(before >= 0);
  const double apart = recorder.microseconds(now + std::chrono::milliseconds(3)) - before;
  CHECK((apart > 2999.9 && apart < 3000.1));
}

}  // namespace
}  // namespace zerolab
