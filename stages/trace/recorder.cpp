#include "stages/trace/recorder.hpp"

#include "stages/trace/log_line.hpp"

namespace zerolab {
namespace {

constexpr std::size_t kFlushBytes = std::size_t{1} << 20;

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
    line.field("scale", e.scale).field("skipped", e.skipped);
    line.field("hash", fmt::format("{:016x}", e.hash));
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
  }
  return "?";
}

Recorder::Recorder(int rank, std::unique_ptr<std::ostream> lines)
    : rank_(rank), lines_(std::move(lines)), epoch_(Clock::now()) {}

Recorder::~Recorder() { flush(); }

void Recorder::set_step(Index step, Index micro_step) {
  step_ = step;
  micro_step_ = micro_step;
}

double Recorder::microseconds(Clock::time_point at) const {
  return std::chrono::duration<double, std::micro>(at - epoch_).count();
}

void Recorder::start_clock() {
  epoch_ = Clock::now();
  started_ = true;
  for (const Early& early : early_) {
    LogLine(buffer_).field("t", Microseconds{microseconds(early.at)}).end_with(early.rest);
  }
  early_.clear();
}

void Recorder::record(const Event& event) {
  if (!active()) return;
  const Clock::time_point now = Clock::now();
  if (!observers_.empty()) {
    const Stamp stamp{microseconds(now), rank_, seq_, step_, micro_step_, phase_};
    for (const Observer& observer : observers_) observer(stamp, event);
  }
  const bool about_a_step =
      std::holds_alternative<StepEvent>(event) || std::holds_alternative<NoteEvent>(event);
  if (lines_ != nullptr && (about_a_step || !steps_only_)) write(now, event);
  ++seq_;
}

void Recorder::write(Clock::time_point at, const Event& event) {
  const auto finish = [&](LogLine line) {
    line.field("rank", rank_).field("seq", seq_).field("step", step_);
    line.field("micro_step", micro_step_).field("phase", name_of(phase_));
    std::visit(Fields{line}, event);
    line.end();
  };
  if (!started_) {
    LogText rest;
    finish(LogLine::behind_a_field(rest));
    early_.push_back({at, std::string(rest.view())});
    return;
  }
  finish(LogLine(buffer_).field("t", Microseconds{microseconds(at)}));
  if (buffer_.size() >= kFlushBytes) flush();
}

void Recorder::flush() {
  if (lines_ == nullptr) return;
  if (!started_) start_clock();  // a failure during set-up: its events must not be lost
  lines_->write(buffer_.view().data(), static_cast<std::streamsize>(buffer_.size()));
  lines_->flush();
  buffer_.clear();
}

}  // namespace zerolab
