#include "lab/failures/evidence.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <fstream>
#include <functional>
#include <map>
#include <utility>

#include "stages/base/types.hpp"

namespace zerolab {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kColumns = 64;  // of the bar that shows when a rank waits

/// Every event of a rank in order. The last line of a run that was killed may be cut: it says
/// nothing.
void for_each_event(const std::filesystem::path& run, int rank,
                    const std::function<void(const Json&)>& see) {
  std::ifstream lines(run / fmt::format("rank{}.events.jsonl", rank));
  for (std::string line; std::getline(lines, line);) {
    const Json event = Json::parse(line, nullptr, false);
    if (event.is_object()) see(event);
  }
}

bool has_all_of(const Json& event, const Json& fields) {
  return std::all_of(fields.items().begin(), fields.items().end(), [&](const auto& field) {
    return event.contains(field.key()) && event.at(field.key()) == field.value();
  });
}

std::string text_of(const Json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

// "rank 0  step 2  backward   head.weight  AVAILABLE -> NOT_AVAILABLE  release"
std::string line_of(const Json& event) {
  std::string line =
      fmt::format("rank {}  step {}  {:<9}", text_of(event.value("rank", Json())),
                  text_of(event.value("step", Json())), text_of(event.value("phase", Json())));
  const auto add = [&](const char* name, const char* before) {
    const std::string value = event.contains(name) ? text_of(event.at(name)) : "";
    if (!value.empty()) line += before + value;
  };
  const std::string kind = event.value("ev", "");
  if (kind == "param" || kind == "grad") {
    add("parameter", "  ");
    add("from", "  ");
    add("to", " -> ");
    add("cause", "  ");
    add("module", " by ");
  } else if (kind == "alloc" || kind == "free") {
    add("bytes", kind == "alloc" ? "  + " : "  - ");
    add("category", "  ");
    add("live", "  live ");
    add("owner", "  ");
  } else if (kind == "comm") {
    add("op", "  ");
    add("elements", "  elements ");
    add("bytes_sent", "  sent ");
    add("owner", "  ");
  } else if (kind == "step") {
    add("loss", "  loss ");
    add("grad_norm", "  gradient norm ");
    add("scale", "  scale ");
    add("flushed", "  flushed ");
    add("why_skipped", "  skipped: ");
  } else {
    add("text", "  ");
  }
  return line;
}

struct Interval {
  double begin = 0, end = 0;
};

// One column for each part of the step: # where the rank computes, . where it waits for others.
std::string bar(const std::vector<Interval>& waits, double begin, double end) {
  const double width = (end - begin) / static_cast<double>(kColumns);
  std::string text;
  for (std::size_t column = 0; column < kColumns; ++column) {
    const double from = begin + width * static_cast<double>(column);
    double waited = 0;
    for (const Interval& wait : waits) {
      waited += std::max(0.0, std::min(wait.end, from + width) - std::max(wait.begin, from));
    }
    text += waited > width / 2 ? '.' : '#';
  }
  return text;
}

std::vector<std::string> busy_and_idle(const std::filesystem::path& run, const Evidence& evidence) {
  std::vector<Interval> waits, last_waits;
  double begin = 0;
  Interval last;
  for_each_event(run, evidence.rank, [&](const Json& event) {
    const std::string kind = event.value("ev", "");
    if (kind == "comm") {
      const double waited = event.value("waited", 0.0);
      const double finished = event.value("finished", 0.0);
      if (finished > waited) waits.push_back({waited, finished});
    } else if (kind == "step") {
      last = {begin, event.value("t", 0.0)};
      last_waits = std::exchange(waits, {});
      begin = last.end;
    }
  });
  if (last.end <= last.begin) return {};
  double waited = 0;
  for (const Interval& wait : last_waits) waited += wait.end - wait.begin;
  const double all = last.end - last.begin;
  return {fmt::format("{:<6} rank {}, last step, {:.1f} ms: # computes, . waits for other ranks",
                      evidence.of_the_fixed ? "fixed" : "broken", evidence.rank, all / 1000),
          fmt::format("       [{}] waits {:.0f}%", bar(last_waits, last.begin, last.end),
                      100 * waited / all)};
}

}  // namespace

std::vector<std::string> evidence_in(const std::filesystem::path& run, const Evidence& evidence) {
  if (evidence.busy) return busy_and_idle(run, evidence);
  std::deque<std::string> lines;
  for_each_event(run, evidence.rank, [&](const Json& event) {
    if (!has_all_of(event, evidence.fields)) return;
    lines.push_back(
        fmt::format("{:<6} {}", evidence.of_the_fixed ? "fixed" : "broken", line_of(event)));
    if (lines.size() > evidence.count) lines.pop_front();
  });
  return {lines.begin(), lines.end()};
}

nlohmann::json count_events(const std::filesystem::path& run) {
  std::map<std::string, Index> counts;
  for_each_event(run, 0, [&](const Json& event) { ++counts[event.value("ev", "?")]; });
  return counts;
}

}  // namespace zerolab
