#include "visualize/diagram/states.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <tuple>

#include "visualize/diagram/dot.hpp"
#include "visualize/diagram/text.hpp"

namespace zerolab::diagram {
namespace {

using log::Count;

enum class Look { ordinary, unused, illegal, only_first, only_second };

struct LookInfo {
  const char *colour, *style, *classes;
};
// Every colour has a style of line of its own: a picture may be printed in black.
constexpr std::array<LookInfo, 5> kLooks{{{kInk, "solid", "move"},
                                          {kFaint, "dotted", "move unused"},
                                          {kRed, "bold", "move illegal"},
                                          {kBlue, "dashed", "move only-first"},
                                          {kOrange, "dashed", "move only-second"}}};
const LookInfo& info(Look look) { return kLooks[static_cast<std::size_t>(look)]; }

/// The moves of one cause on an arrow.
struct Row {
  Look look = Look::ordinary;
  std::string cause, count, time;  // empty: left out
};

/// The moves between two states.
struct Arrow {
  std::size_t from = 0, to = 0;
  Look look = Look::ordinary;
  std::vector<Row> rows;
};

/// What one or two runs made of the same kind of move.
struct Pair {
  const Transition* first = nullptr;
  const Transition* second = nullptr;

  static bool used(const Transition* each) { return each != nullptr && each->count > 0; }
  bool used() const { return used(first) || used(second); }
  Look look(bool two_runs) const {
    if (!used()) return Look::unused;
    for (const Transition* each : {first, second}) {
      if (used(each) && !each->legal) return Look::illegal;
    }
    if (!two_runs || (used(first) && used(second))) return Look::ordinary;
    return used(first) ? Look::only_first : Look::only_second;
  }
};

std::string count_text(const Transition* move) {
  return Pair::used(move) ? fmt::format("{}\u00D7", with_commas(move->count)) : "\u2013";
}

std::string time_text(const Transition& move) {
  const auto mean = move.mean_time();
  return mean ? duration(*mean) : "";
}

/// One or two runs of one machine.
struct Subject {
  const char* prefix;     // of ids
  const char* arrow_ids;  // of the ids of arrows
  std::string title;
  const char* const* about;  // what each state means
  const Machine* first;
  const Machine* second = nullptr;
};

std::vector<Arrow> arrows_of(const Subject& subject, const StatesOptions& options) {
  std::map<std::tuple<std::size_t, std::size_t, std::string>, Pair> pairs;
  for (const Transition& each : subject.first->transitions) {
    pairs[{each.from, each.to, each.cause}].first = &each;
  }
  const bool two = subject.second != nullptr;
  if (two) {
    for (const Transition& each : subject.second->transitions) {
      pairs[{each.from, each.to, each.cause}].second = &each;
    }
  }
  // An arrow for what is legal, one for what is not; what is on it decides how it looks.
  std::map<std::tuple<std::size_t, std::size_t, bool>, Arrow> arrows;
  for (const auto& [key, pair] : pairs) {
    const auto& [from, to, cause] = key;
    const Look look = pair.look(two);
    if (look == Look::unused && !options.spec) continue;
    Row row{look, cause, {}, {}};
    if (look != Look::unused) {
      row.count = count_text(pair.first);
      if (two) {
        row.count += " | " + count_text(pair.second);
      } else {
        row.time = time_text(*pair.first);
      }
    }
    Arrow& arrow = arrows[{from, to, look == Look::illegal}];
    if (arrow.rows.empty()) {
      arrow = {from, to, look, {}};
    } else if (arrow.look == Look::unused) {
      arrow.look = look;
    } else if (look != Look::unused && look != arrow.look) {
      arrow.look = Look::ordinary;
    }
    arrow.rows.push_back(row);
  }
  std::vector<Arrow> result;
  result.reserve(arrows.size());
  for (auto& [key, arrow] : arrows) result.push_back(std::move(arrow));
  return result;
}

std::string label_of(const Arrow& arrow, bool times) {
  std::string text = R"(<table border="0" cellborder="0" cellspacing="0" cellpadding="1">)";
  for (const Row& row : arrow.rows) {
    const char* colour = info(row.look).colour;
    const auto cell = [&](const std::string& content, const char* align, const char* ink) {
      return fmt::format(R"(<td align="{}"><font color="{}">{}</font></td>)", align, ink,
                         content.empty() ? " " : content);
    };
    text += "<tr>";
    if (!row.cause.empty()) text += cell(row.cause, "left", colour);
    text += cell(row.count, "right", colour);
    if (times && !row.time.empty()) {
      text += cell(row.time, "right", row.look == Look::ordinary ? kMuted : colour);
    }
    text += "</tr>";
  }
  return text + "</table>";
}

std::string share_text(const Machine& machine, std::size_t state) {
  const double all = std::accumulate(machine.time.begin(), machine.time.end(), 0.0);
  if (all <= 0) return "";
  const double percent = 100 * machine.time[state] / all;
  return percent > 0 && percent < 1 ? "&lt;1% of the time"
                                    : fmt::format("{:.0f}% of the time", percent);
}

bool visited(const std::vector<Arrow>& arrows, std::size_t state) {
  return std::any_of(arrows.begin(), arrows.end(), [state](const Arrow& arrow) {
    return arrow.look != Look::unused && (arrow.from == state || arrow.to == state);
  });
}

std::string machine_dot(const Subject& subject, const StatesOptions& options,
                        const std::string& prefix) {
  const std::vector<Arrow> arrows = arrows_of(subject, options);
  const std::vector<std::string>& states = subject.first->states;
  const auto id = [&](std::size_t state) {
    return fmt::format("{}{}-{}", prefix, subject.prefix, states[state]);
  };
  std::string dot = fmt::format(
      "  subgraph \"cluster_{}{}\" {{\n"
      "    graph [label=<{}>, color=\"{}\", style=rounded, margin=22, fontcolor=\"{}\"]\n",
      prefix, subject.prefix, subject.title, kFaint, kMuted);
  for (std::size_t i = 0; i < states.size(); ++i) {
    const bool used = visited(arrows, i);
    std::string lines = fmt::format("<b>{}</b><br/>{}", states[i], small(subject.about[i]));
    if (options.times && used && subject.second == nullptr) {
      lines += "<br/>" + small(share_text(*subject.first, i));
    }
    dot += fmt::format(
        "    \"{}\" [id=\"{}\", class=\"state{}\", shape=box, style=\"rounded,filled{}\", "
        "fillcolor=\"{}\", color=\"{}\", fontcolor=\"{}\", margin=\"0.16,0.08\", label=<{}>]\n",
        id(i), id(i), used ? "" : " unused", used ? "" : ",dashed", used ? "#EAF2F8" : "white",
        used ? kInk : kFaint, used ? kInk : kMuted, lines);
  }
  // States stand in the order of their machine, whatever a run did with them.
  for (std::size_t i = 0; i + 1 < states.size(); ++i) {
    dot += fmt::format("    \"{}\" -> \"{}\" [style=invis, weight=100]\n", id(i), id(i + 1));
  }
  for (const Arrow& arrow : arrows) {
    const LookInfo& look = info(arrow.look);
    dot += fmt::format(
        "    \"{}\" -> \"{}\" [id=\"{}{}-{}-{}{}\", class=\"{}\", color=\"{}\", style={}, "
        "label=<{}>]\n",
        id(arrow.from), id(arrow.to), prefix, subject.arrow_ids, states[arrow.from],
        states[arrow.to], arrow.look == Look::illegal ? "-illegal" : "", look.classes, look.colour,
        look.style, label_of(arrow, options.times));
  }
  return dot + "  }\n";
}

constexpr std::array<const char*, 3> kAboutStates{
    "not whole on this rank", "a collective is writing it", "whole: may be read"};
constexpr std::array<const char*, 6> kAboutGradients{
    "nothing computed yet",    "some of its uses are in", "all uses are in",
    "being summed over ranks", "summed, with its owner",  "given back"};

std::string machines_dot(const Observed& first, const Observed* second,
                         const StatesOptions& options, const std::string& prefix,
                         const std::string& whose) {
  std::string dot;  // Graphviz stacks from below
  if (options.gradients) {
    dot += machine_dot({"gradient", "gradient-edge", whose + "gradients", kAboutGradients.data(),
                        &first.gradients, second == nullptr ? nullptr : &second->gradients},
                       options, prefix);
  }
  if (options.parameters) {
    dot += machine_dot({"state", "edge", whose + "parameters", kAboutStates.data(),
                        &first.parameters, second == nullptr ? nullptr : &second->parameters},
                       options, prefix);
  }
  return dot;
}

std::string about(const Observed& run) {
  return fmt::format("stage {}, {} rank{}, {}", run.stage, run.ranks, run.ranks == 1 ? "" : "s",
                     run.selected == run.all
                         ? fmt::format("{} parameters", run.all)
                         : fmt::format("{} of {} parameters", run.selected, run.all));
}

std::string caption(const StatesOptions& options) {
  return fmt::format("n\u00D7: how often, over all ranks and steps{}{}",
                     options.times ? "; behind it the mean time in the state before" : "",
                     options.spec ? "; grey: declared, and never made" : "");
}

constexpr const char* kGraph = "rankdir=LR, nodesep=0.35, ranksep=0.5";

}  // namespace

std::string states_dot(const Observed& run, const StatesOptions& options) {
  const Heading heading{options.title ? about(run) : "", {caption(options)}, run.remarks};
  return graph_begin(kGraph, heading) + machines_dot(run, nullptr, options, "", "") + "}\n";
}

std::string states_dot(std::span<const Observed> runs, const StatesOptions& options) {
  if (runs.size() == 1) return states_dot(runs[0], options);
  Heading heading{"", {caption(options)}, {}};
  std::string dot;
  for (std::size_t i = runs.size(); i-- > 0;) {  // from below, too
    const std::string stage = about(runs[i]) + ": ";
    dot += machines_dot(runs[i], nullptr, options, fmt::format("run{}-", i), stage);
  }
  if (options.title) heading.title = fmt::format("{} runs, one below the other", runs.size());
  for (const Observed& run : runs) {
    for (const std::string& remark : run.remarks) {
      heading.notes.push_back(fmt::format("stage {}: {}", run.stage, remark));
    }
  }
  return graph_begin(kGraph, heading) + dot + "}\n";
}

std::string states_diff_dot(const Observed& first, const Observed& second,
                            const StatesOptions& options) {
  Heading heading;
  if (options.title) heading.title = "two runs: what only one of them does is dashed";
  heading.caption = {fmt::format("first, blue: {} ({})", first.name, about(first)),
                     fmt::format("second, orange: {} ({})", second.name, about(second)),
                     "n\u00D7 | m\u00D7: how often in the first and in the second, over all ranks "
                     "and steps"};
  for (const Observed* run : {&first, &second}) {
    for (const std::string& remark : run->remarks) {
      heading.notes.push_back(fmt::format("{}: {}", run->name, remark));
    }
  }
  return graph_begin(kGraph, heading) + machines_dot(first, &second, options, "", "") + "}\n";
}

}  // namespace zerolab::diagram
