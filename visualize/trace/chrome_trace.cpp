#include "visualize/trace/chrome_trace.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "visualize/log/event_lines.hpp"

namespace zerolab::trace {
namespace {

using Json = nlohmann::ordered_json;
using log::Count;

enum Thread { compute = 1, communication = 2 };

/// Writes the events one after the other, as an array.
class Writer {
 public:
  explicit Writer(std::ostream& out) : out_(out) { out_ << "{\"traceEvents\": [\n"; }

  void operator()(const Json& event) {
    out_ << (first_ ? "" : ",\n") << event.dump(-1, ' ', false, Json::error_handler_t::replace);
    first_ = false;
  }
  void end() { out_ << "\n], \"displayTimeUnit\": \"ms\"}\n"; }

 private:
  std::ostream& out_;
  bool first_ = true;
};

/// From a time to a time on a thread.
struct Slice {
  double begin = 0, end = 0;
  std::string name;
  const char* category = "";
  Json arguments = Json::object();
};

/// What the threads of one rank did, and its counters.
class RankTrace {
 public:
  /// `first` is the time that the trace calls 0, `flows` counts arrows over all ranks.
  RankTrace(Count rank, double first, Count& flows) : rank_(rank), first_(first), flows_(flows) {}

  void see(const log::Event& event) {
    if (!step_ || event.step != step_number_) {
      close(phase_);
      close(step_);
      step_ = Slice{last_, last_, event.step == 0 ? "set-up" : fmt::format("step {}", event.step),
                    "step"};
      step_number_ = event.step;
    }
    if (!phase_ || event.phase != phase_word_ || event.micro_step != micro_step_) {
      close(phase_);
      phase_ = Slice{last_,
                     last_,
                     std::string(name_of(event.phase)),
                     "phase",
                     {{"micro_step", event.micro_step}}};
      phase_word_ = event.phase;
      micro_step_ = event.micro_step;
    }
    last_ = std::max(last_, at(event.t));
    step_->end = phase_->end = last_;
    std::visit([&](const auto& what) { see(event, what); }, event.what);
  }

  void write(Writer& writer) {
    close(phase_);
    close(step_);
    write_names(writer);
    write_slices(writer, compute, std::move(computed_));
    write_slices(writer, communication, std::move(communicated_));
    for (const Json& counter : counters_) writer(counter);
  }

 private:
  // To the nanosecond: a difference of doubles has digits behind that mean nothing.
  double at(double t) const { return std::round(std::max(0.0, t - first_) * 1e3) / 1e3; }

  void close(std::optional<Slice>& slice) {
    if (slice) computed_.push_back(std::move(*slice));
    slice.reset();
  }

  Json event(const char* kind, Thread thread, double t, const std::string& name) const {
    return {
        {"ph", kind}, {"pid", rank_}, {"tid", static_cast<int>(thread)}, {"ts", t}, {"name", name}};
  }

  void count(double t, const std::string& name, const Json& values) {
    counters_.push_back(
        {{"ph", "C"}, {"pid", rank_}, {"tid", 0}, {"ts", t}, {"name", name}, {"args", values}});
  }

  void see(const log::Event& /*event*/, const log::MemoryEvent& memory) {
    Count& live = live_[{memory.pool, memory.category}];
    live = memory.taken ? live + memory.bytes : live - std::min(live, memory.bytes);
    count(last_, fmt::format("{} memory: {}", memory.pool, name_of(memory.category)),
          {{"bytes", live}});
  }

  void see(const log::Event& event, const log::CommEvent& comm) {
    const std::string name = fmt::format("{} {}", name_of(comm.op), comm.owner);
    const double finished = at(comm.finished), arrived = std::max(finished, at(comm.waited));
    communicated_.push_back({at(comm.started),
                             finished,
                             name,
                             "collective",
                             {{"elements", comm.elements},
                              {"dtype", name_of(comm.dtype)},
                              {"bytes_sent", comm.bytes_sent},
                              {"issued", at(comm.issued)}}});
    computed_.push_back({at(comm.waited), at(event.t), "wait for " + name, "wait", Json::object()});
    const Count id = flows_++;
    const auto flow = [&](const char* kind, Thread thread, double t) {
      Json json = this->event(kind, thread, t, "collective");
      json["cat"] = "flow";
      json["id"] = id;
      if (*kind == 'f') json["bp"] = "e";  // it ends in the slice around it
      points_[thread].push_back(json);
    };
    flow("s", compute, at(comm.issued));
    flow("t", communication, std::max(at(comm.issued), at(comm.started)));
    flow("f", compute, std::max({at(comm.issued), at(comm.started), arrived}));
  }

  void see(const log::Event& /*event*/, const log::SpanEvent& span) {
    computed_.push_back(
        {at(span.start), at(span.end), span.module, "module", {{"kind", name_of(span.kind)}}});
  }

  void see(const log::Event& /*event*/, const log::StepEvent& step) {
    if (step.loss) count(last_, "loss", {{"loss", *step.loss}});
  }

  void see(const log::Event& /*event*/, const log::NoteEvent& note) {
    Json instant = this->event("i", compute, last_, note.text);
    instant["cat"] = "note";
    instant["s"] = "t";  // on this thread only
    points_[compute].push_back(instant);
  }

  template <typename Other>
  void see(const log::Event& /*event*/, const Other& /*other*/) {}

  void write_names(Writer& writer) const {
    const auto name = [&](const char* what, int thread, const char* key, const Json& value) {
      writer(
          {{"ph", "M"}, {"pid", rank_}, {"tid", thread}, {"name", what}, {"args", {{key, value}}}});
    };
    name("process_name", 0, "name", fmt::format("rank {}", rank_));
    name("process_sort_index", 0, "sort_index", rank_);
    name("thread_name", compute, "name", "compute");
    name("thread_sort_index", compute, "sort_index", 1);
    name("thread_name", communication, "name", "communication");
    name("thread_sort_index", communication, "sort_index", 2);
  }

  // In the order of time, a slice before what is in it; arrows and notes in between. What is told
  // to go on behind the end of the slice around it ends with that one: viewers take only brackets.
  void write_slices(Writer& writer, Thread thread, std::vector<Slice> slices) {
    std::reverse(slices.begin(), slices.end());  // what is outside is told later
    std::stable_sort(slices.begin(), slices.end(), [](const Slice& a, const Slice& b) {
      return std::pair(a.begin, -a.end) < std::pair(b.begin, -b.end);
    });
    std::vector<Json> events;
    std::vector<double> ends;  // of the slices that are open
    for (Slice& slice : slices) {
      while (!ends.empty() && ends.back() <= slice.begin) ends.pop_back();
      if (!ends.empty()) slice.end = std::min(slice.end, ends.back());
      slice.end = std::max(slice.begin, slice.end);
      ends.push_back(slice.end);
      Json json = event("X", thread, slice.begin, slice.name);
      json["dur"] = std::round((slice.end - slice.begin) * 1e3) / 1e3;
      json["cat"] = slice.category;
      json["args"] = slice.arguments;
      events.push_back(std::move(json));
    }
    events.insert(events.end(), points_[thread].begin(), points_[thread].end());
    std::stable_sort(events.begin(), events.end(), [](const Json& a, const Json& b) {
      return a["ts"].get<double>() < b["ts"].get<double>();
    });
    for (const Json& each : events) writer(each);
  }

  Count rank_;
  double first_;
  Count& flows_;
  double last_ = 0;  // the time of the log, which never goes back here
  std::optional<Slice> step_, phase_;
  Count step_number_ = 0, micro_step_ = 0;
  log::Phase phase_word_ = log::Phase::set_up;
  std::vector<Slice> computed_, communicated_;
  std::map<Thread, std::vector<Json>> points_;
  std::map<std::pair<std::string, log::Category>, Count> live_;
  std::vector<Json> counters_;
};

/// Calls `see` with the events of a rank until it returns false; what the file lacks is returned.
std::string read_rank(const log::RunFolder& folder, Count rank,
                      const std::function<bool(const log::Event&)>& see) {
  const std::string name = log::event_file_name(rank);
  std::ifstream in(folder.path / name, std::ios::binary);
  if (!in) return fmt::format("there is no log of rank {}", rank);
  log::EventLines lines(in);
  Count unreadable = 0;
  while (const auto line = lines.next()) {
    if (!line->event) {
      ++unreadable;
    } else if (!see(*line->event)) {
      return "";
    }
  }
  if (lines.cut_in() > 0) {
    return fmt::format("{} ends in the middle of line {}", name, lines.cut_in());
  }
  if (unreadable > 0) return fmt::format("{} has {} line(s) that cannot be read", name, unreadable);
  return "";
}

}  // namespace

std::vector<std::string> write_chrome_trace(const log::RunFolder& folder, std::ostream& out) {
  std::optional<double> first;
  for (Count rank = 0; rank < folder.run.world_size; ++rank) {
    read_rank(folder, rank, [&](const log::Event& event) {
      first = std::min(first.value_or(event.t), event.t);
      return false;
    });
  }
  if (!first) {
    throw log::Unreadable(fmt::format("{} has no events", folder.path.string()),
                          "make the run again with --log-level events");
  }
  std::vector<std::string> remarks;
  Count flows = 0;
  Writer writer(out);
  for (Count rank = 0; rank < folder.run.world_size; ++rank) {
    RankTrace trace(rank, *first, flows);
    const std::string lacks = read_rank(folder, rank, [&](const log::Event& event) {
      trace.see(event);
      return true;
    });
    if (!lacks.empty()) remarks.push_back(lacks);
    trace.write(writer);
  }
  writer.end();
  return remarks;
}

}  // namespace zerolab::trace
