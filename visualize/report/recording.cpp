#include "visualize/report/recording.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <numeric>
#include <unordered_map>

#include "visualize/log/event_lines.hpp"

namespace zerolab::report {
namespace {

constexpr const char* kDevice = "device";

double total(const log::Usage& usage) {
  return static_cast<double>(std::accumulate(usage.begin(), usage.end(), Count{0}));
}

/// When what an event tells of began.
double begin_of(const log::Event& event) {
  if (const auto* comm = std::get_if<log::CommEvent>(&event.what)) {
    return std::min(comm->issued, event.t);
  }
  if (const auto* span = std::get_if<log::SpanEvent>(&event.what)) {
    return std::min(span->start, event.t);
  }
  return event.t;
}

/// Modules that run inside others lie below them. Spans are told when they end, so a module comes
/// after those inside it.
void set_depths(std::vector<Span>& spans) {
  std::stable_sort(spans.begin(), spans.end(), [](const Span& a, const Span& b) {
    return a.start != b.start ? a.start < b.start : a.end > b.end;
  });
  std::vector<double> open;
  for (Span& span : spans) {
    while (!open.empty() && open.back() <= span.start) open.pop_back();
    span.depth = open.size();
    open.push_back(span.end);
  }
}

class Recorder {
 public:
  Recorder(const log::RunFolder& folder, const Wanted& wanted, Names& names)
      : wanted_(wanted), names_(names) {
    for (const log::Parameter& parameter : folder.run.parameters) {
      numbers_.emplace(parameter.name, numbers_.size());
    }
    states_.resize(numbers_.size(), log::Status::not_available);
    begin_step(0, 0);
  }

  void see(const log::Event& event) {
    ++result_.events;
    if (between_ && event.step == view_.step) return see_between(event);
    if (between_ || event.step != view_.step) {
      end_step(false);
      begin_step(event.step, begin_of(event));
    }
    if (view_.phases.empty()) view_.begin = begin_of(event);
    view_.begin = std::min(view_.begin, begin_of(event));
    view_.end = std::max(view_.end, event.t);
    const bool same = !view_.phases.empty() && view_.phases.back().phase == event.phase &&
                      view_.phases.back().micro_step == event.micro_step;
    if (!same) view_.phases.push_back({begin_of(event), event.phase, event.micro_step});
    std::visit([&](const auto& what) { see(event, what); }, event.what);
  }

  RankRecording finish() {
    end_step(false);
    result_.there = true;
    return std::move(result_);
  }

 private:
  // Evaluations, texts and the end of the run belong to no step, and are not drawn.
  void see_between(const log::Event& event) {
    if (const auto* memory = std::get_if<log::MemoryEvent>(&event.what)) apply(*memory);
    if (const auto* move = std::get_if<log::ParamEvent>(&event.what)) apply(*move);
    if (const auto* checkpoint = std::get_if<log::CheckpointEvent>(&event.what)) {
      result_.checkpoint_seconds += checkpoint->seconds;
    }
  }

  void see(const log::Event& event, const log::ParamEvent& move) {
    result_.in_full = true;
    const auto parameter = apply(move);
    if (!parameter) return;
    view_.transitions.push_back(
        {event.t, *parameter, move.from, move.to, move.cause, names_[move.module]});
  }
  void see(const log::Event& /*event*/, const log::GradEvent& /*move*/) { result_.in_full = true; }
  void see(const log::Event& event, const log::MemoryEvent& memory) {
    result_.in_full = true;
    if (!apply(memory)) return;
    const double bytes = static_cast<double>(memory.bytes);
    view_.memory.push_back(
        {event.t, memory.category, memory.taken ? bytes : -bytes, names_[memory.owner]});
    figures_.peak = std::max(figures_.peak, total(live_));
  }
  void see(const log::Event& event, const log::CommEvent& comm) {
    result_.in_full = true;
    const Transfer transfer{comm.op,     comm.elements, comm.bytes_sent,
                            comm.issued, comm.started,  comm.finished,
                            comm.waited, event.t,       names_[comm.owner]};
    view_.transfers.push_back(transfer);
    figures_.transfer += std::max(0.0, comm.finished - comm.started);
    wait_of(comm.op) += transfer.wait();
  }
  void see(const log::Event& /*event*/, const log::SpanEvent& span) {
    result_.in_full = true;
    view_.spans.push_back({names_[span.module], span.kind, span.start, span.end, 0});
  }
  void see(const log::Event& /*event*/, const log::StepEvent& step) {
    figures_.result = step;
    result_.steady = live_;
    end_step(true);
  }
  void see(const log::Event& /*event*/, const log::CheckpointEvent& checkpoint) {
    result_.checkpoint_seconds += checkpoint.seconds;
  }
  void see(const log::Event& /*event*/, const log::NoteEvent& /*note*/) {}

  double& wait_of(log::Op op) {
    if (op == log::Op::all_gather) return figures_.gather_wait;
    const bool reduces = op == log::Op::reduce_scatter || op == log::Op::all_reduce;
    return reduces ? figures_.reduce_wait : figures_.other_wait;
  }

  bool apply(const log::MemoryEvent& memory) {
    if (memory.pool != kDevice) return false;
    Count& live = live_[static_cast<std::size_t>(memory.category)];
    live = memory.taken ? live + memory.bytes : live - std::min(live, memory.bytes);
    if (total(live_) > total(result_.peak)) result_.peak = live_;
    return true;
  }
  std::optional<std::size_t> apply(const log::ParamEvent& move) {
    const auto found = numbers_.find(move.parameter);
    if (found == numbers_.end()) return std::nullopt;
    states_[found->second] = move.to;
    return found->second;
  }

  void begin_step(Count step, double begin) {
    view_ = StepView{.step = step,
                     .begin = begin,
                     .end = begin,
                     .ended = false,
                     .live = live_,
                     .states = states_,
                     .phases = {},
                     .memory = {},
                     .transfers = {},
                     .spans = {},
                     .transitions = {},
                     .left_out = 0};
    figures_ = StepFigures{.step = step, .peak = total(live_), .result = {}};
    between_ = false;
  }

  void end_step(bool ended) {
    if (between_) return;
    between_ = true;
    view_.ended = ended || view_.step == 0;
    figures_.duration = view_.end - view_.begin;
    if (ended) result_.steps.push_back(figures_);
    // The last step takes the place of an unwanted one before it.
    std::vector<StepView>& views = result_.views;
    if (!views.empty() && wanted_.steps.count(views.back().step) == 0) views.pop_back();
    if (!wanted_.in_full || view_.phases.empty() || !result_.in_full) return;
    set_depths(view_.spans);
    views.push_back(std::move(view_));
    view_.step = views.back().step;
  }

  const Wanted& wanted_;
  Names& names_;
  std::unordered_map<std::string, std::size_t> numbers_;
  std::vector<log::Status> states_;
  log::Usage live_{};
  StepView view_;
  StepFigures figures_;
  bool between_ = false;  // a step is over, and the next has not begun
  RankRecording result_;
};

/// Keeps the longest, in their order.
template <typename Entry, typename Length>
Count keep_longest(std::vector<Entry>& entries, std::size_t most, Length length) {
  if (entries.size() <= most) return 0;
  std::vector<std::size_t> places(entries.size());
  std::iota(places.begin(), places.end(), std::size_t{0});
  std::stable_sort(places.begin(), places.end(), [&](std::size_t a, std::size_t b) {
    return length(entries[a]) > length(entries[b]);
  });
  places.resize(most);
  std::sort(places.begin(), places.end());
  std::vector<Entry> kept;
  kept.reserve(most);
  for (const std::size_t place : places) kept.push_back(entries[place]);
  const Count left_out = entries.size() - most;
  entries = std::move(kept);
  return left_out;
}

/// Changes between the highest moment and the end of a part of the step become one for each
/// category: every part keeps its highest total.
Count thin_memory(std::vector<MemoryChange>& memory, std::size_t most) {
  const std::size_t parts = most / (2 * log::kWords<log::Category>.size());
  if (memory.size() <= most || parts == 0) return 0;
  std::vector<MemoryChange> kept;
  const auto sum_up = [&](std::size_t begin, std::size_t end) {
    std::array<double, log::kWords<log::Category>.size()> change{};
    for (std::size_t i = begin; i < end; ++i) {
      change[static_cast<std::size_t>(memory[i].category)] += memory[i].bytes;
    }
    for (std::size_t c = 0; c < change.size(); ++c) {
      if (change[c] == 0) continue;
      kept.push_back(
          {memory[end - 1].t, static_cast<log::Category>(c), change[c], memory[end - 1].owner});
    }
  };
  for (std::size_t part = 0; part < parts; ++part) {
    const std::size_t begin = memory.size() * part / parts;
    const std::size_t end = memory.size() * (part + 1) / parts;
    double sum = 0, highest = 0;
    std::size_t at = begin;
    for (std::size_t i = begin; i < end; ++i) {
      sum += memory[i].bytes;
      if (sum > highest) highest = sum, at = i + 1;
    }
    sum_up(begin, at);
    sum_up(at, end);
  }
  const Count left_out = memory.size() - std::min(memory.size(), kept.size());
  memory = std::move(kept);
  return left_out;
}

}  // namespace

RankRecording record(const log::RunFolder& folder, Count rank, const Wanted& wanted, Names& names) {
  const std::filesystem::path file = folder.path / log::event_file_name(rank);
  std::error_code ignored;
  std::ifstream in(file, std::ios::binary);
  if (!in || !std::filesystem::is_regular_file(file, ignored)) return {};
  Recorder recorder(folder, wanted, names);
  log::EventLines lines(in);
  Count unreadable = 0;
  std::string first;
  while (const auto line = lines.next()) {
    if (line->event) {
      recorder.see(*line->event);
    } else if (unreadable++ == 0) {
      first = fmt::format("line {} {}", line->number, line->mistake);
    }
  }
  RankRecording result = recorder.finish();
  result.unreadable = unreadable;
  result.first_unreadable = first;
  result.cut_in = lines.cut_in();
  return result;
}

void thin(StepView& view, std::size_t most) {
  most = std::max<std::size_t>(most, 400);
  view.left_out += thin_memory(view.memory, most / 2);
  view.left_out +=
      keep_longest(view.spans, most / 4, [](const Span& each) { return each.end - each.start; });
  view.left_out += keep_longest(view.transfers, most / 8,
                                [](const Transfer& each) { return each.finished - each.started; });
  if (view.transitions.size() > most / 4) {
    view.left_out += view.transitions.size() - most / 4;
    view.transitions.resize(most / 4);
  }
}

}  // namespace zerolab::report
