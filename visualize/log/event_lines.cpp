#include "visualize/log/event_lines.hpp"

#include <limits>

#include "visualize/log/fields.hpp"

namespace zerolab::log {
namespace {

ParamEvent param_of(const Fields& line) {
  return {.parameter = line.name("parameter"),
          .from = line.word<Status>("from"),
          .to = line.word<Status>("to"),
          .cause = line.word<Cause>("cause"),
          .module = line.text("module"),
          .active = line.count("active")};
}

GradEvent grad_of(const Fields& line) {
  return {.parameter = line.name("parameter"),
          .from = line.word<GradientStatus>("from"),
          .to = line.word<GradientStatus>("to")};
}

MemoryEvent memory_of(const Fields& line, bool taken) {
  return {.taken = taken,
          .pool = line.name("pool"),
          .category = line.word<Category>("category"),
          .bytes = line.count("bytes"),
          .live = line.count("live"),
          .peak = line.count("peak"),
          .owner = line.text("owner")};
}

CommEvent comm_of(const Fields& line) {
  return {.op = line.word<Op>("op"),
          .elements = line.count("elements"),
          .dtype = line.word<Dtype>("dtype"),
          .bytes_sent = line.count("bytes_sent"),
          .issued = line.number("issued"),
          .started = line.number("started"),
          .finished = line.number("finished"),
          .waited = line.number("waited"),
          .owner = line.text("owner")};
}

SpanEvent span_of(const Fields& line) {
  return {.module = line.name("module"),
          .kind = line.word<VisitKind>("kind"),
          .start = line.number("start"),
          .end = line.number("end")};
}

StepEvent step_of(const Fields& line) {
  StepEvent step{.loss = line.number_or_null("loss"),
                 .grad_norm = line.number_or_null("grad_norm"),
                 .scale = line.number_or_null("scale"),
                 .lr = line.number("lr"),
                 .flushed = line.number("flushed"),
                 .skipped = line.flag("skipped"),
                 .why_skipped = {},
                 .hash = line.text("hash")};
  if (line.has("why_skipped")) step.why_skipped = line.text("why_skipped");
  return step;
}

CheckpointEvent checkpoint_of(const Fields& line) {
  return {.action = line.word<Action>("action"),
          .path = line.name("path"),
          .bytes = line.count("bytes"),
          .files = line.count("files"),
          .seconds = line.number("seconds"),
          .io_seconds = line.number("io_seconds"),
          .sync_seconds = line.number("sync_seconds"),
          .wait_seconds = line.number("wait_seconds")};
}

}  // namespace

Event read_event(std::string_view text, Count number) {
  const nlohmann::json json = nlohmann::json::parse(text, nullptr, false);
  if (json.is_discarded()) throw Mistake("is not JSON");
  const Fields line(json);
  Event event{.line = number,
              .t = line.number("t"),
              .rank = line.count("rank"),
              .seq = line.count("seq"),
              .step = line.count("step"),
              .micro_step = line.count("micro_step"),
              .phase = line.word<Phase>("phase"),
              .what = {}};
  const std::string kind = line.text("ev");
  if (kind == "param") {
    event.what = param_of(line);
  } else if (kind == "grad") {
    event.what = grad_of(line);
  } else if (kind == "alloc" || kind == "free") {
    event.what = memory_of(line, kind == "alloc");
  } else if (kind == "comm") {
    event.what = comm_of(line);
  } else if (kind == "span") {
    event.what = span_of(line);
  } else if (kind == "step") {
    event.what = step_of(line);
  } else if (kind == "checkpoint") {
    event.what = checkpoint_of(line);
  } else if (kind == "note") {
    event.what = NoteEvent{line.text("text")};
  } else {
    throw Mistake(fmt::format("ev is {}, which is no kind of event", shown(kind)));
  }
  return event;
}

std::optional<Line> EventLines::next() {
  in_.getline(buffer_.data(), static_cast<std::streamsize>(buffer_.size()));
  auto length = static_cast<std::size_t>(in_.gcount());
  if (length == 0 && !in_.good()) return std::nullopt;
  Line line{++number_, std::nullopt};
  if (in_.fail()) {  // it did not fit
    in_.clear();
    in_.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
    line.mistake = fmt::format("is longer than {} bytes", kLongest);
    return line;
  }
  const bool ended = !in_.eof();
  if (ended) --length;  // the newline is counted
  try {
    line.event = read_event({buffer_.data(), length}, number_);
  } catch (const Mistake& mistake) {
    if (!ended) {
      cut_in_ = number_;
      return std::nullopt;
    }
    line.mistake = mistake.what();
  }
  return line;
}

}  // namespace zerolab::log
