#include "visualize/log/event_lines.hpp"

#include <fmt/format.h>

#include <sstream>

#include "stages/trace/recorder.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/thrown.hpp"

namespace zerolab {
namespace {

const std::string kStart =
    R"({"t":1.5,"rank":2,"seq":7,"step":3,"micro_step":1,"phase":"backward",)";

std::string grad(const std::string& name) {
  return kStart + R"("ev":"grad","parameter":")" + name + R"(","from":"none","to":"partial"})";
}

struct Read {
  std::vector<log::Line> lines;
  log::Count cut_in = 0;
};
Read read(const std::string& text) {
  std::istringstream in(text);
  log::EventLines lines(in);
  Read result;
  while (auto line = lines.next()) result.lines.push_back(*line);
  result.cut_in = lines.cut_in();
  return result;
}

/// What is wrong with the only line of a text.
std::string mistake_in(const std::string& line) {
  const Read all = read(line + "\n");
  REQUIRE(all.lines.size() == 1);
  CHECK_FALSE(all.lines[0].event);
  return all.lines[0].mistake;
}

TEST_CASE("every kind of event that is recorded is read back, field by field", "[log]") {
  auto text = std::make_unique<std::ostringstream>();
  const std::ostringstream& written = *text;
  Recorder recorder(2, std::move(text));
  recorder.start_clock();
  recorder.set_step(3, 1);
  recorder.set_phase(Phase::backward);
  recorder.record(ParamEvent{"a", "NOT_AVAILABLE", "INFLIGHT", "prefetch", "m", 2});
  recorder.record(GradEvent{"a", "ready", "reducing"});
  recorder.record(AllocEvent{"device", "workspace", 5, 6, 7, "who"});
  recorder.record(FreeEvent{"device", "activations", 5, 1, 7, "who"});
  recorder.record(CommEvent{"all_gather", 8, "bf16", 16, 1, 2, 3.5, 4, "a"});
  recorder.record(SpanEvent{"m", "recompute", 5, 6});
  StepEvent step;
  step.loss = std::numeric_limits<double>::quiet_NaN();
  step.grad_norm = 0.1;
  step.skipped = true;
  step.hash = 0xABC;
  step.why_skipped = "because";
  recorder.record(step);
  recorder.record(NoteEvent{"said \"so\"\n"});
  recorder.record(CheckpointEvent{"load", "ck/a", 4096, 3, 0.5, 0.25, 0.125, 0.0625});
  recorder.flush();

  const Read all = read(written.str());
  REQUIRE(all.lines.size() == 9);
  CHECK(all.cut_in == 0);
  for (std::size_t i = 0; i < 9; ++i) {
    INFO(all.lines[i].mistake);
    REQUIRE(all.lines[i].event);
    const log::Event& event = *all.lines[i].event;
    CHECK(event.line == i + 1);
    CHECK(event.seq == i);
    CHECK(event.rank == 2);
    CHECK(event.step == 3);
    CHECK(event.micro_step == 1);
    CHECK(event.phase == log::Phase::backward);
  }
  const auto& param = std::get<log::ParamEvent>(all.lines[0].event->what);
  CHECK(param.parameter == "a");
  CHECK(param.from == log::Status::not_available);
  CHECK(param.to == log::Status::inflight);
  CHECK(param.cause == log::Cause::prefetch);
  CHECK(param.module == "m");
  CHECK(param.active == 2);
  const auto& gradient = std::get<log::GradEvent>(all.lines[1].event->what);
  CHECK(gradient.from == log::GradientStatus::ready);
  CHECK(gradient.to == log::GradientStatus::reducing);
  const auto& alloc = std::get<log::MemoryEvent>(all.lines[2].event->what);
  CHECK(alloc.taken);
  CHECK(alloc.category == log::Category::workspace);
  CHECK(alloc.bytes == 5);
  CHECK(alloc.live == 6);
  CHECK(alloc.peak == 7);
  CHECK(alloc.owner == "who");
  CHECK_FALSE(std::get<log::MemoryEvent>(all.lines[3].event->what).taken);
  const auto& comm = std::get<log::CommEvent>(all.lines[4].event->what);
  CHECK(comm.op == log::Op::all_gather);
  CHECK(comm.elements == 8);
  CHECK(comm.dtype == log::Dtype::bf16);
  CHECK(comm.bytes_sent == 16);
  CHECK(comm.issued == 1);
  CHECK(comm.started == 2);
  CHECK(comm.finished == 3.5);
  CHECK(comm.waited == 4);
  const auto& span = std::get<log::SpanEvent>(all.lines[5].event->what);
  CHECK(span.kind == log::VisitKind::recompute);
  CHECK(span.start == 5);
  CHECK(span.end == 6);
  const auto& told = std::get<log::StepEvent>(all.lines[6].event->what);
  CHECK_FALSE(told.loss);
  CHECK(told.grad_norm == 0.1);
  CHECK(told.skipped);
  CHECK(told.why_skipped == "because");
  CHECK(told.hash == "0000000000000abc");
  CHECK(std::get<log::NoteEvent>(all.lines[7].event->what).text == "said \"so\"\n");
  const auto& checkpoint = std::get<log::CheckpointEvent>(all.lines[8].event->what);
  CHECK(checkpoint.action == log::Action::load);
  CHECK(checkpoint.path == "ck/a");
  CHECK((checkpoint.bytes == 4096 && checkpoint.files == 3));
  CHECK((checkpoint.seconds == 0.5 && checkpoint.io_seconds == 0.25));
  CHECK((checkpoint.sync_seconds == 0.125 && checkpoint.wait_seconds == 0.0625));
}

TEST_CASE("a line that is no event says what is wrong, and the next one is read", "[log]") {
  const Read all = read(grad("a") + "\nnonsense\n\n" + grad("b") + "\n");
  REQUIRE(all.lines.size() == 4);
  CHECK(all.lines[0].event);
  CHECK(all.lines[1].mistake == "is not JSON");
  CHECK(all.lines[1].number == 2);
  CHECK(all.lines[2].mistake == "is not JSON");
  CHECK(all.lines[3].event);
  CHECK(all.lines[3].event->line == 4);

  CHECK(mistake_in("[1]") == "it is [1]; an object is expected");
  CHECK(mistake_in("{}") == "has no 't'");
  CHECK(mistake_in(kStart + R"("ev":"spam"})") == "ev is \"spam\", which is no kind of event");
  CHECK(mistake_in(kStart + R"("ev":7})") == "ev is 7; a text is expected");
  CHECK(mistake_in(kStart + R"("ev":"grad","parameter":"","from":"none","to":"none"})") ==
        "parameter is \"\"; a name is expected");
  CHECK(mistake_in(kStart + R"("ev":"grad","parameter":"a","from":"NONE","to":"none"})") ==
        "from is \"NONE\"; one of none, partial, ready, reducing, reduced, freed is expected");
  CHECK(contains(mistake_in(R"({"t":1,"rank":-1})"), "rank is -1; a whole number from 0"));
  CHECK(contains(mistake_in(R"({"t":1,"rank":0.5})"), "rank is 0.5; a whole number"));
  CHECK(contains(mistake_in(R"({"t":1,"rank":18446744073709551615})"), "to 2^53 is expected"));
  CHECK(contains(mistake_in(R"({"t":1,"rank":1e3})"), "a whole number"));
  CHECK(contains(mistake_in(R"({"t":"1"})"), "t is \"1\"; a number is expected"));
  CHECK(mistake_in(R"({"t":1e999})") == "is not JSON");
  CHECK(mistake_in("{\"t\":\"\xFF\"}") == "is not JSON");
  CHECK(mistake_in(std::string("{\0}", 3)) == "is not JSON");
  CHECK(mistake_in(std::string(100'000, '[')) == "is not JSON");
}

TEST_CASE("a message shows little of a value that is very long, and no control characters",
          "[log]") {
  const std::string mistake =
      mistake_in(kStart + R"("ev":"\u001b[31m)" + std::string(5000, 'x') + "\"}");
  CHECK(mistake.size() < 120);
  CHECK(contains(mistake, R"(\u001b[31m)"));
}

TEST_CASE("a line that is cut at the end of a file is told apart from a wrong one", "[log]") {
  const std::string whole = grad("a") + "\n";
  for (std::size_t length = 1; length + 1 < whole.size(); ++length) {
    const Read all = read(whole + whole.substr(0, length));
    CHECK(all.lines.size() == 1);
    CHECK(all.cut_in == 2);
  }
  const Read unended = read(whole + grad("b"));  // nothing is lost but the end of the line
  CHECK(unended.lines.size() == 2);
  CHECK(unended.cut_in == 0);
  CHECK(read(whole + std::string(100, '\0')).cut_in == 2);
  CHECK(read("").lines.empty());
  CHECK(read("").cut_in == 0);
}

TEST_CASE("names of ten thousand bytes are read, and lines without an end are not", "[log]") {
  const Read names = read(grad(std::string(10'000, 'n')) + "\n");
  REQUIRE(names.lines.size() == 1);
  REQUIRE(names.lines[0].event);
  CHECK(std::get<log::GradEvent>(names.lines[0].event->what).parameter.size() == 10'000);

  const Read endless = read(grad("a") + "\n" + std::string(3 << 20, 'x') + "\n" + grad("b") + "\n");
  REQUIRE(endless.lines.size() == 3);
  CHECK(endless.lines[1].mistake == "is longer than 1048576 bytes");
  CHECK(endless.lines[2].event);
  CHECK(endless.lines[2].number == 3);
}

}  // namespace
}  // namespace zerolab
