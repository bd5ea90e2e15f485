#include "lab/show.hpp"

#include <fmt/format.h>

#include <cstdio>

#include "stages/memory/ledger.hpp"

namespace zerolab {
namespace {

std::string where(const Stamp& stamp) {
  return fmt::format("{:>10.3f} ms  step {:<3} {:<8}", stamp.t / 1000, stamp.step,
                     name_of(stamp.phase));
}

struct Line {
  const Shown& shown;
  const Stamp& stamp;

  std::string operator()(const ParamEvent& e) const {
    if (!shown.transitions) return {};
    return fmt::format("{}  {:<32} {:>13} -> {:<13} {}{}{}", where(stamp), e.parameter, e.from,
                       e.to, e.cause, e.module.empty() ? "" : " by ", e.module);
  }
  std::string operator()(const GradEvent& e) const {
    if (!shown.transitions) return {};
    return fmt::format("{}  {:<32} {:>13} -> {:<13} gradient", where(stamp), e.parameter, e.from,
                       e.to);
  }
  std::string memory(char sign, std::string_view category, Index bytes, Index live,
                     std::string_view owner) const {
    if (!shown.memory) return {};
    return fmt::format("{}  {}{:>9}  {:<14} live {:>9}  {}", where(stamp), sign, human_bytes(bytes),
                       category, human_bytes(live), owner);
  }
  std::string operator()(const AllocEvent& e) const {
    return memory('+', e.category, e.bytes, e.live, e.owner);
  }
  std::string operator()(const FreeEvent& e) const {
    return memory('-', e.category, e.bytes, e.live, e.owner);
  }
  std::string operator()(const CommEvent& e) const {
    if (!shown.comm) return {};
    return fmt::format("{}  {:<14} {:>9} elements, sent {:>9}, {:>8.0f} us  {}", where(stamp), e.op,
                       e.elements, human_bytes(e.bytes_sent), e.finished - e.started, e.owner);
  }
  std::string operator()(const SpanEvent&) const { return {}; }
  std::string operator()(const StepEvent&) const { return {}; }
  std::string operator()(const CheckpointEvent& e) const {  // it explains what is around it
    return fmt::format("{}  {:<14} {:>9}, {:>8.1f} ms  {}", where(stamp), e.action,
                       human_bytes(e.bytes), e.seconds * 1000, e.path);
  }
  std::string operator()(const NoteEvent&) const { return {}; }
};

}  // namespace

void show_notes(Recorder& recorder, std::ostream& out) {
  recorder.observe([&out](const Stamp&, const Event& event) {
    if (const auto* note = std::get_if<NoteEvent>(&event)) {
      out << "warning " << note->text << std::endl;
    }
  });
}

void show_events(Recorder& recorder, const Shown& shown) {
  if (!shown.transitions && !shown.comm && !shown.memory) return;
  recorder.observe([shown](const Stamp& stamp, const Event& event) {
    const std::string line = std::visit(Line{shown, stamp}, event);
    if (!line.empty()) fmt::print("{}\n", line);
  });
}

}  // namespace zerolab
