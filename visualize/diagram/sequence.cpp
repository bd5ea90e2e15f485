#include "visualize/diagram/sequence.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <functional>

#include "visualize/diagram/canvas.hpp"
#include "visualize/diagram/text.hpp"
#include "visualize/log/event_lines.hpp"

namespace zerolab::diagram {
namespace {

using log::Count;

constexpr std::size_t kMostRows = 1500;
constexpr std::size_t kName = 46;  // characters beside an arrow

// Places of one run's picture, in points.
constexpr double kRow = 20, kTimes = 62;
constexpr double kBoxes = 200, kRank = kTimes + 10 + kBoxes / 2, kOthers = kRank + 460;
constexpr double kLane = 7, kLanes = 8, kWidth = kOthers + kLane * kLanes + 50;

/// Calls `see` with every event of a rank.
void read_events(const log::RunFolder& run, Count rank,
                 const std::function<void(const log::Event&)>& see) {
  std::ifstream in(run.path / log::event_file_name(rank), std::ios::binary);
  log::EventLines lines(in);
  while (const auto line = lines.next()) {
    if (line->event) see(*line->event);
  }
}

bool trains(log::Phase phase) {
  return phase == log::Phase::forward || phase == log::Phase::backward ||
         phase == log::Phase::step || phase == log::Phase::publish;
}

Count step_of(const log::RunFolder& run, const SequenceOptions& options) {
  if (options.rank >= run.run.world_size) {
    throw log::Unreadable(fmt::format("{} has ranks 0 to {}, and no rank {}", run.path.string(),
                                      run.run.world_size - 1, options.rank),
                          "name one of them with --rank");
  }
  Count last = 0;
  read_events(run, options.rank, [&](const log::Event& event) {
    if (std::holds_alternative<log::StepEvent>(event.what)) last = std::max(last, event.step);
  });
  if (last == 0) {
    throw log::Unreadable(
        fmt::format("{} has no whole step of rank {} to draw", run.path.string(), options.rank),
        "make the run again with --log-level events, and let it do a step");
  }
  if (options.step && (*options.step < 1 || *options.step > last)) {
    throw log::Unreadable(
        fmt::format("{} has steps 1 to {}, and no step {}", run.path.string(), last, *options.step),
        "name one of them with --step");
  }
  return options.step.value_or(last);
}

/// A part of the step, from a time on.
struct Part {
  double begin = 0;
  log::Phase phase = log::Phase::forward;
  Count micro_step = 0;
};

/// One thing that happens, at a time.
struct Happening {
  enum class Kind { module, issue, arrival, release, done };
  Kind kind = Kind::module;
  double t = 0;
  std::string text = {};     // escaped
  std::size_t transfer = 0;  // of issue and arrival: which collective
  Count more = 0;            // of release: parameters beside the first
  double waited = 0;         // of arrival: microseconds
};
using Kind = Happening::Kind;

struct Step {
  std::vector<Part> parts;
  std::vector<Happening> happenings;  // in the order of time
  std::size_t transfers = 0;
};

/// "a .. b (3 parameters)" takes less room as "a .. (3 parameters)".
std::string short_owner(const std::string& owner) {
  const std::size_t dots = owner.find(" .. "), count = owner.rfind(" (");
  if (dots == std::string::npos || count == std::string::npos || count < dots) return owner;
  return owner.substr(0, dots) + " .." + owner.substr(count);
}

/// Reads a step out of the events.
class Reader {
 public:
  explicit Reader(Count step) : wanted_(step) {}

  void see(const log::Event& event) {
    if (event.step == wanted_ && trains(event.phase)) {
      const bool goes_on = !step_.parts.empty() && step_.parts.back().phase == event.phase &&
                           step_.parts.back().micro_step == event.micro_step;
      // What the events of a part tell began after the last event of the one before.
      if (!goes_on) step_.parts.push_back({last_t_, event.phase, event.micro_step});
      std::visit([&](const auto& what) { see(event, what); }, event.what);
    }
    last_t_ = event.t;
  }

  Step step() && {
    std::stable_sort(step_.happenings.begin(), step_.happenings.end(),
                     [](const Happening& a, const Happening& b) { return a.t < b.t; });
    return std::move(step_);
  }

 private:
  void add(const Happening& happening) {
    step_.happenings.push_back(happening);
    in_release_ = happening.kind == Kind::release;
  }

  void see(const log::Event& event, const log::ParamEvent& move) {
    if (move.to != log::Status::not_available) return;
    if (in_release_) {
      ++step_.happenings.back().more;
    } else {
      add({Kind::release, event.t, label_text(move.parameter, kName)});
    }
  }

  void see(const log::Event& event, const log::CommEvent& comm) {
    const double waited = std::max(0.0, event.t - comm.waited);
    add({Kind::issue, comm.issued,
         fmt::format("{} <b>{}</b> {}", name_of(comm.op),
                     label_text(short_owner(comm.owner), kName),
                     small(size(comm.elements * log::size_of(comm.dtype)))),
         step_.transfers});
    add({Kind::arrival, event.t, label_text(short_owner(comm.owner), kName), step_.transfers++, 0,
         waited});
  }

  // What has run inside of a module is told before it, and stands for it.
  void see(const log::Event& /*event*/, const log::SpanEvent& span) {
    const bool outer = last_begin_ >= span.start;
    last_begin_ = span.start;
    const char* again = span.kind == log::VisitKind::recompute ? " (again)" : "";
    if (!outer) add({Kind::module, span.start, label_text(span.module, 34) + again});
  }

  void see(const log::Event& event, const log::StepEvent& step) {
    add({Kind::done, event.t, step.skipped ? "step skipped" : "step done"});
  }

  template <typename Other>
  void see(const log::Event& /*event*/, const Other& /*other*/) {}

  Count wanted_;
  Step step_;
  double last_t_ = 0, last_begin_ = -1e300;
  bool in_release_ = false;
};

/// The picture of one run, to the right of `left`.
class Page {
 public:
  Page(Canvas& canvas, double left, bool times) : canvas_(canvas), left_(left), times_(times) {}

  void draw(const log::RunFolder& run, Count rank, const Step& step) {
    canvas_.text({left_, 0, kWidth, kRow}, fmt::format("<b>stage {}, rank {} of {}</b>",
                                                       run.run.stage, rank, run.run.world_size));
    begun_.resize(step.transfers);
    begin_ = step.parts.empty() ? 0 : step.parts.front().begin;
    y_ = 2 * kRow;
    std::size_t part = 0;
    const double top = y_;
    for (std::size_t i = 0; i < step.happenings.size(); ++i) {
      const Happening& here = step.happenings[i];
      while (part < step.parts.size() && step.parts[part].begin <= here.t) {
        draw_part(step.parts[part++]);
      }
      const bool at_once = here.kind == Kind::issue && i + 1 < step.happenings.size() &&
                           step.happenings[i + 1].kind == Kind::arrival &&
                           step.happenings[i + 1].transfer == here.transfer;
      if (at_once) {
        draw_transfer(here, step.happenings[++i]);
      } else {
        draw(here);
      }
      if (y_ > kMostRows * kRow) {
        canvas_.text({left_ + kRank, y_, kBoxes, kRow}, small("and more"));
        y_ += kRow;
        break;
      }
    }
    draw_lifeline(kRank, top, fmt::format("rank {}", rank));
    draw_lifeline(kOthers, top, "the other ranks");
  }

 private:
  void draw_lifeline(double x, double top, const std::string& name) {
    canvas_.box({left_ + x - 50, top - kRow + 2, 100, kRow - 4}, {.line = kMuted}, name);
    canvas_.line({left_ + x, top - 2}, {left_ + x, y_ + 4}, {.line = kFaint, .style = "dashed"});
  }

  void draw_part(const Part& part) {
    y_ += 3;
    canvas_.line({left_, y_ + 1}, {left_ + kOthers + 50, y_ + 1}, {.line = kFaint});
    canvas_.text({left_, y_ + 2, kTimes, kRow}, fmt::format("<b>{}</b>", name_of(part.phase)));
    y_ += kRow;
  }

  void draw_time(double t) {
    if (!times_) return;
    canvas_.text({left_, y_, kTimes, kRow}, small(duration(std::max(0.0, t - begin_))),
                 Canvas::Align::right);
  }

  void draw(const Happening& here) {
    draw_time(here.t);
    const double middle = y_ + kRow / 2;
    switch (here.kind) {
      case Kind::module:
      case Kind::done:
        canvas_.box({left_ + kRank - kBoxes / 2, y_ + 2, kBoxes, kRow - 4},
                    {.fill = here.kind == Kind::module ? "#EAF2F8" : "white",
                     .line = kInk,
                     .style = "rounded,filled",
                     .classes = "module"},
                    here.text);
        break;
      case Kind::release:
        canvas_.text(
            {left_ + kRank + 8, y_, kOthers - kRank, kRow},
            small(here.more == 0 ? fmt::format("releases {}", here.text)
                                 : fmt::format("releases {} and {} more", here.text, here.more)));
        break;
      case Kind::issue: {
        const std::size_t lane = free_lane();
        begun_[here.transfer] = {middle, lane};
        canvas_.line({left_ + kRank, middle + 6}, {lane_x(lane), middle + 6}, {.line = kBlue},
                     true);
        label(here.text);
        break;
      }
      case Kind::arrival: {
        const Begun& begun = begun_[here.transfer];
        under_way(begun.y + 6, middle + 6, begun.lane);
        lanes_[begun.lane] = false;
        canvas_.line({lane_x(begun.lane), middle + 6}, {left_ + kRank, middle + 6},
                     {.line = kBlue, .style = "dashed"}, true);
        label(small(here.text + " arrives" + waited(here)));
        break;
      }
    }
    y_ += kRow;
  }

  // Nothing happened in between: out and back in one place.
  void draw_transfer(const Happening& issue, const Happening& arrival) {
    draw_time(issue.t);
    const double y = y_ + kRow / 2 + 6;
    const std::size_t lane = free_lane();
    lanes_[lane] = false;
    canvas_.line({left_ + kRank, y}, {lane_x(lane), y}, {.line = kBlue}, true);
    canvas_.line({lane_x(lane), y + 6}, {left_ + kRank, y + 6}, {.line = kBlue, .style = "dashed"},
                 true);
    under_way(y, y + 6, lane);
    label(issue.text + small(waited(arrival)));
    y_ += kRow + 6;
  }

  void label(const std::string& text) {
    canvas_.text({left_ + kRank + 8, y_ + 1, kOthers - kRank - 16, kRow - 7}, text);
  }

  std::string waited(const Happening& arrival) const {
    return times_ ? ", waited for " + duration(arrival.waited) : "";
  }

  void under_way(double from, double to, std::size_t lane) {
    canvas_.box({lane_x(lane) - 2, from, 4, to - from},
                {.fill = kBlue, .line = kBlue, .classes = "transfer"});
  }

  double lane_x(std::size_t lane) const {
    return left_ + kOthers + kLane * static_cast<double>(lane);
  }

  std::size_t free_lane() {
    const auto found = std::find(lanes_.begin(), lanes_.end(), false);
    const std::size_t lane = found == lanes_.end()
                                 ? lanes_.size() - 1
                                 : static_cast<std::size_t>(found - lanes_.begin());
    lanes_[lane] = true;
    return lane;
  }

  struct Begun {
    double y = 0;
    std::size_t lane = 0;
  };

  Canvas& canvas_;
  double left_;
  bool times_;
  double y_ = 0, begin_ = 0;
  std::vector<Begun> begun_;
  std::vector<bool> lanes_ = std::vector<bool>(kLanes);
};

}  // namespace

std::string sequence_dot(const std::vector<log::RunFolder>& runs, const SequenceOptions& options) {
  Canvas canvas;
  double left = 0;
  Count last = 0;
  for (const log::RunFolder& run : runs) {
    last = step_of(run, options);
    Reader reader(last);
    read_events(run, options.rank, [&](const log::Event& event) { reader.see(event); });
    Page(canvas, left, options.times).draw(run, options.rank, std::move(reader).step());
    left += kWidth;
  }
  Heading heading{.title = fmt::format("step {}", last), .caption = {}, .notes = {}};
  heading.caption.emplace_back(
      "downwards what one rank does: boxes are modules that run, innermost only; bars on the right "
      "collectives under way");
  if (options.times) {
    heading.caption.emplace_back(
        "times on the left are since the step began; distances are not to "
        "scale");
  }
  return canvas.dot(heading);
}

}  // namespace zerolab::diagram
