#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>

#include "visualize/log/words.hpp"

namespace zerolab::log {

/// Of bytes, elements, lines: sums of what a hostile log says wrap around, and harm nobody.
using Count = std::uint64_t;

// The kinds of event, field by field as docs/log-format.md has them. Times are in microseconds.

struct ParamEvent {
  std::string parameter;
  Status from = Status::not_available;
  Status to = Status::not_available;
  Cause cause = Cause::set_up;
  std::string module;
  Count active = 0;
};

struct GradEvent {
  std::string parameter;
  GradientStatus from = GradientStatus::none;
  GradientStatus to = GradientStatus::none;
};

struct MemoryEvent {
  bool taken = true;  // alloc; otherwise free
  std::string pool;
  Category category = Category::parameters;
  Count bytes = 0, live = 0, peak = 0;
  std::string owner;
};

struct CommEvent {
  Op op = Op::barrier;
  Count elements = 0;
  Dtype dtype = Dtype::fp32;
  Count bytes_sent = 0;
  double issued = 0, started = 0, finished = 0, waited = 0;
  std::string owner;
};

struct SpanEvent {
  std::string module;
  VisitKind kind = VisitKind::forward;
  double start = 0, end = 0;
};

/// Numbers are null where they were not finite.
struct StepEvent {
  std::optional<double> loss, grad_norm, scale;
  double lr = 0, flushed = 0;
  bool skipped = false;
  std::string why_skipped, hash;
};

/// A checkpoint was written or read.
struct CheckpointEvent {
  Action action = Action::save;
  std::string path;
  Count bytes = 0, files = 0;
  double seconds = 0, io_seconds = 0, sync_seconds = 0, wait_seconds = 0;
};

struct NoteEvent {
  std::string text;
};

/// One line of rank<r>.events.jsonl.
struct Event {
  Count line = 0;  // from 1
  double t = 0;
  Count rank = 0, seq = 0, step = 0, micro_step = 0;
  Phase phase = Phase::set_up;
  std::variant<ParamEvent, GradEvent, MemoryEvent, CommEvent, SpanEvent, StepEvent, CheckpointEvent,
               NoteEvent>
      what;
};

}  // namespace zerolab::log
