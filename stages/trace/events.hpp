#pragma once

#include <string_view>
#include <variant>

#include "stages/base/types.hpp"

namespace zerolab {

/// What a rank is doing; every event carries it.
enum class Phase { set_up, forward, backward, step, publish, evaluate, generate, save, tear_down };
std::string_view name_of(Phase phase);

/// Where an event happened. `t` is in microseconds since the barrier after set-up (negative
/// before).
struct Stamp {
  double t = 0;
  int rank = 0;
  Index seq = 0;
  Index step = 0;
  Index micro_step = 0;
  Phase phase = Phase::set_up;
};

// The events of the log, field by field as docs/log-format.md has them. The views are only valid
// while the event is being recorded.

/// A parameter state transition. `active` is the number of modules that use it at that moment.
struct ParamEvent {
  std::string_view parameter, from, to, cause, module;
  Index active = 0;
};

/// A gradient state transition: none, partial, ready, reducing, reduced, freed.
struct GradEvent {
  std::string_view parameter, from, to;
};

struct AllocEvent {
  std::string_view pool, category;
  Index bytes = 0, live = 0, peak = 0;
  std::string_view owner;
};

struct FreeEvent {
  std::string_view pool, category;
  Index bytes = 0, live = 0, peak = 0;
  std::string_view owner;
};

/// A collective. Times are in microseconds on the clock of Stamp::t: handed to the stream, begun by
/// its worker, done, and when the compute thread began to wait for it.
struct CommEvent {
  std::string_view op;
  Index elements = 0;
  std::string_view dtype;
  Index bytes_sent = 0;
  double issued = 0, started = 0, finished = 0, waited = 0;
  std::string_view owner;
};

/// A module's forward or backward, in microseconds: its run alone, without what was fetched for it.
struct SpanEvent {
  std::string_view module, kind;
  double start = 0, end = 0;
};

/// The result of one optimizer step.
struct StepEvent {
  double loss = 0;
  double grad_norm = 0;
  double scale = 1;
  bool skipped = false;
  std::uint64_t hash = 0;
  float learning_rate = 0;
  double flushed = 0;  // share of what backward rounded to 16 bits that became zero by it
  std::string_view why_skipped = {};
};

/// A checkpoint is written or read, as this rank sees it. `seconds` is how long training stood
/// still: for reading or writing, for the disk to have it for good, and for the other ranks.
struct CheckpointEvent {
  std::string_view action;  // save, load, consolidate
  std::string_view path;    // folder, or file
  Index bytes = 0;          // by this rank
  Index files = 0;          // that it opened
  double seconds = 0, io_seconds = 0, sync_seconds = 0, wait_seconds = 0;
};

struct NoteEvent {
  std::string_view text;
};

using Event = std::variant<ParamEvent, GradEvent, AllocEvent, FreeEvent, CommEvent, SpanEvent,
                           StepEvent, CheckpointEvent, NoteEvent>;

}  // namespace zerolab
