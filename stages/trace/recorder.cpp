#include "stages/trace/recorder.hpp"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>

#include "stages/base/json_text.hpp"
#include "stages/trace/log_line.hpp"

namespace zerolab {
namespace {

constexpr std::size_t kFlushBytes = std::size_t{1} << 20;
constexpr std::array kTimes{"t", "issued", "started", "finished", "waited", "start", "end"};

/// What comes behind the fields that all events have.
struct Fields {
  LogLine& line;

  void operator()(const ParamEvent& e) const {
    line.field("ev", "param").field("parameter", e.parameter);
    line.field("from", e.from).field("to", e.to).field("cause", e.cause);
    line.field("module", e.module).field("active", e.active);
  }
  void operator()(const GradEvent& e) const {
    line.field("ev", "grad").field("parameter", e.parameter);
    line.field("from", e.from).field("to", e.to);
  }
  template <typename MemoryEvent>
  void memory(std::string_view ev, const MemoryEvent& e) const {
    line.field("ev", ev).field("pool", e.pool).field("category", e.category);
    line.field("bytes", e.bytes).field("live", e.live).field("peak", e.peak);
    line.field("owner", e.owner);
  }
  void operator()(const AllocEvent& e) const { memory("alloc", e); }
  void operator()(const FreeEvent& e) const { memory("free", e); }
  void operator()(const CommEvent& e) const {
    line.field("ev", "comm").field("op", e.op).field("elements", e.elements);
    line.field("dtype", e.dtype).field("bytes_sent", e.bytes_sent);
    line.field("issued", Microseconds{e.issued}).field("started", Microseconds{e.started});
    line.field("finished", Microseconds{e.finished}).field("waited", Microseconds{e.waited});
    line.field("owner", e.owner);
  }
  void operator()(const SpanEvent& e) const {
    line.field("ev", "span").field("module", e.module).field("kind", e.kind);
    line.field("start", Microseconds{e.start}).field("end", Microseconds{e.end});
  }
  void operator()(const StepEvent& e) const {
    line.field("ev", "step").field("loss", e.loss).field("grad_norm", e.grad_norm);
    line.field("lr", as_written(e.learning_rate));
    line.field("flushed", e.flushed);
    line.field("scale", e.scale).field("skipped", e.skipped);
    if (e.skipped) line.field("why_skipped", e.why_skipped);
    line.field("hash", fmt::format("{:016x}", e.hash));
  }
  void operator()(const CheckpointEvent& e) const {
    line.field("ev", "checkpoint").field("action", e.action).field("path", e.path);
    line.field("bytes", e.bytes).field("files", e.files).field("seconds", e.seconds);
    line.field("io_seconds", e.io_seconds).field("sync_seconds", e.sync_seconds);
    line.field("wait_seconds", e.wait_seconds);
  }
  void operator()(const NoteEvent& e) const { line.field("ev", "note").field("text", e.text); }
};

}  // namespace

std::string_view name_of(Phase phase) {
  switch (phase) {
    case Phase::set_up:
      return "set_up";
    case Phase::forward:
      return "forward";
    case Phase::backward:
      return "backward";
    case Phase::step:
      return "step";
    case Phase::publish:
      return "publish";
    case Phase::evaluate:
      return "evaluate";
    case Phase::generate:
      return "generate";
    case Phase::save:
      return "save";
    case Phase::tear_down:
      return "tear_down";
  }
  return "?";
}

std::string to_string(const Place& place) {
  const bool in_micro_step = place.phase == Phase::forward || place.phase == Phase::backward;
  std::string text;
  if (place.step > 0) text += fmt::format("step {}, ", place.step);
  if (in_micro_step) text += fmt::format("micro-step {}, ", place.micro_step);
  text += place.phase == Phase::step ? "optimizer" : name_of(place.phase);
  if (!place.module.empty()) text += fmt::format(" of '{}'", place.module);
  return text;
}

Recorder::Recorder(int rank, std::unique_ptr<std::ostream> lines)
    : rank_(rank), lines_(std::move(lines)), epoch_(Clock::now()) {
  set_place();
}

Recorder::~Recorder() { flush(); }

void Recorder::set_step(Index step, Index micro_step) {
  step_ = step;
  micro_step_ = micro_step;
  set_place();
}

void Recorder::set_phase(Phase phase) {
  phase_ = phase;
  set_place();
}

void Recorder::set_place() {
  place_ = fmt::format(R"(,"step":{},"micro_step":{},"phase":"{}")", step_, micro_step_,
                       name_of(phase_));
}

double Recorder::microseconds(Clock::time_point at) const {
  return std::chrono::duration<double, std::micro>(at - epoch_).count();
}

std::string Recorder::where() const {
  Place place;
  tell_place(place);
  return to_string(place);
}

void Recorder::tell_place(Place& place) const {
  place.step = step_;
  place.micro_step = micro_step_;
  place.phase = phase_;
  place.module = modules_.empty() ? std::string_view{} : modules_.back();
}

void Recorder::start_clock() {
  const Clock::time_point now = Clock::now();
  const double moved = microseconds(now);
  epoch_ = now;
  started_ = true;
  // The lines so far have the times of a clock that began earlier.
  std::istringstream lines{buffer_};
  buffer_.clear();
  for (std::string line; std::getline(lines, line);) {
    nlohmann::ordered_json json = nlohmann::ordered_json::parse(line);
    for (const char* key : kTimes) {
      if (!json.contains(key)) continue;
      json[key] = std::round((json[key].get<double>() - moved) * 10) / 10;
    }
    buffer_.append(json.dump() + '\n');
  }
}

void Recorder::record(const Event& event) {
  if (!active()) return;
  const Clock::time_point now = Clock::now();
  if (!observers_.empty()) {
    const Stamp stamp{microseconds(now), rank_, seq_, step_, micro_step_, phase_};
    for (const Observer& observer : observers_) observer(stamp, event);
  }
  const bool about_a_step = std::holds_alternative<StepEvent>(event) ||
                            std::holds_alternative<NoteEvent>(event) ||
                            std::holds_alternative<CheckpointEvent>(event);
  if (lines_ != nullptr && (about_a_step || !steps_only_)) write(now, event);
  ++seq_;
  // A process that is killed takes with it what is not written; then that is less than a step.
  if (started_ && std::holds_alternative<StepEvent>(event)) flush();
}

void Recorder::write(Clock::time_point at, const Event& event) {
  LogLine line(buffer_);
  line.field("t", Microseconds{microseconds(at)}).field("rank", rank_).field("seq", seq_);
  line.fields(place_);
  std::visit(Fields{line}, event);
  line.end();
  if (started_ && buffer_.size() >= kFlushBytes) flush();
}

void Recorder::flush() {
  if (lines_ == nullptr) return;
  if (!started_) start_clock();  // a failure during set-up: its events must not be lost
  lines_->write(buffer_.data(), static_cast<std::streamsize>(buffer_.size()));
  lines_->flush();
  buffer_.clear();
}

}  // namespace zerolab
