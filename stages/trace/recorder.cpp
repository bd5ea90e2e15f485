#include "stages/trace/recorder.hpp"

#include <cmath>
#include <iterator>
#include <nlohmann/json.hpp>

namespace zerolab {
namespace {

constexpr std::size_t kFlushBytes = std::size_t{1} << 20;

// Names come from users (model descriptions), so they are escaped; nearly none needs it.
std::string quoted(std::string_view text) {
  for (const char c : text) {
    if (c == '"' || c == '\\' || static_cast<unsigned char>(c) < 0x20 ||
        static_cast<unsigned char>(c) >= 0x80) {
      return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    }
  }
  return fmt::format("\"{}\"", text);
}

std::string number(double value) {
  return std::isfinite(value) ? fmt::format("{}", value) : "null";
}

struct Fields {
  fmt::memory_buffer& out;
  std::vector<Recorder::Gap>* gaps = nullptr;  // filled before the clock is started

  template <typename... Args>
  void add(fmt::format_string<Args...> format, Args&&... args) const {
    fmt::format_to(std::back_inserter(out), format, std::forward<Args>(args)...);
  }

  void time(std::string_view name, double microseconds) const {
    add(R"(,"{}":)", name);
    if (gaps != nullptr) {
      gaps->push_back({out.size(), microseconds});
    } else {
      add("{:.1f}", microseconds);
    }
  }

  void operator()(const ParamEvent& e) const {
    add(R"("param","parameter":{},"from":"{}","to":"{}","cause":"{}","module":{},"active":{})",
        quoted(e.parameter), e.from, e.to, e.cause, quoted(e.module), e.active);
  }
  void operator()(const GradEvent& e) const {
    add(R"("grad","parameter":{},"from":"{}","to":"{}")", quoted(e.parameter), e.from, e.to);
  }
  void memory(std::string_view ev, std::string_view pool, std::string_view category, Index bytes,
              Index live, Index peak, std::string_view owner) const {
    add(R"("{}","pool":"{}","category":"{}","bytes":{},"live":{},"peak":{},"owner":{})", ev, pool,
        category, bytes, live, peak, quoted(owner));
  }
  void operator()(const AllocEvent& e) const {
    memory("alloc", e.pool, e.category, e.bytes, e.live, e.peak, e.owner);
  }
  void operator()(const FreeEvent& e) const {
    memory("free", e.pool, e.category, e.bytes, e.live, e.peak, e.owner);
  }
  void operator()(const CommEvent& e) const {
    add(R"("comm","op":"{}","elements":{},"dtype":"{}","bytes_sent":{})", e.op, e.elements, e.dtype,
        e.bytes_sent);
    time("issued", e.issued);
    time("started", e.started);
    time("finished", e.finished);
    time("waited", e.waited);
    add(R"(,"owner":{})", quoted(e.owner));
  }
  void operator()(const SpanEvent& e) const {
    add(R"("span","module":{},"kind":"{}")", quoted(e.module), e.kind);
    time("start", e.start);
    time("end", e.end);
  }
  void operator()(const StepEvent& e) const {
    add(R"("step","loss":{},"grad_norm":{},"scale":{},"skipped":{},"hash":"{:016x}")",
        number(e.loss), number(e.grad_norm), number(e.scale), e.skipped, e.hash);
  }
  void operator()(const NoteEvent& e) const { add(R"("note","text":{})", quoted(e.text)); }
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

std::string Recorder::where() const {
  std::string text(name_of(phase_));
  if (!modules_.empty()) text += fmt::format(" of '{}'", modules_.back());
  if (step_ > 0) text += fmt::format(", step {}, micro-step {}", step_, micro_step_);
  return text;
}

void Recorder::start_clock() {
  const Clock::time_point now = Clock::now();
  const double moved = microseconds(now);
  epoch_ = now;
  started_ = true;
  const auto out = std::back_inserter(buffer_);
  for (const Early& line : early_) {
    fmt::format_to(out, "{{\"t\":{:.1f}", microseconds(line.at));
    std::string_view rest = line.rest;
    std::size_t written = 0;
    for (const Gap& gap : line.gaps) {
      fmt::format_to(out, "{}{:.1f}", rest.substr(written, gap.at - written),
                     gap.microseconds - moved);
      written = gap.at;
    }
    fmt::format_to(out, "{}\n", rest.substr(written));
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
  // A process that is killed takes with it what is not written; then that is less than a step.
  if (started_ && std::holds_alternative<StepEvent>(event)) flush();
}

void Recorder::write(Clock::time_point at, const Event& event) {
  const auto rest = [&](fmt::memory_buffer& out, std::vector<Gap>* gaps) {
    fmt::format_to(std::back_inserter(out),
                   R"(,"rank":{},"seq":{},"step":{},"micro_step":{},"phase":"{}","ev":)", rank_,
                   seq_, step_, micro_step_, name_of(phase_));
    std::visit(Fields{out, gaps}, event);
    out.push_back('}');
  };
  if (!started_) {
    Early early{at, {}, {}};
    fmt::memory_buffer line;
    rest(line, &early.gaps);
    early.rest = fmt::to_string(line);
    early_.push_back(std::move(early));
    return;
  }
  fmt::format_to(std::back_inserter(buffer_), "{{\"t\":{:.1f}", microseconds(at));
  rest(buffer_, nullptr);
  buffer_.push_back('\n');
  if (buffer_.size() >= kFlushBytes) flush();
}

void Recorder::flush() {
  if (lines_ == nullptr) return;
  if (!started_) start_clock();  // a failure during set-up: its events must not be lost
  lines_->write(buffer_.data(), static_cast<std::streamsize>(buffer_.size()));
  lines_->flush();
  buffer_.clear();
}

}  // namespace zerolab
