#include "visualize/diagram/dot.hpp"

#include <fmt/format.h>

#include "visualize/diagram/text.hpp"

namespace zerolab::diagram {

std::string small(std::string_view text, std::string_view colour) {
  if (text.empty()) return "";  // an element that is empty is an error to Graphviz
  return fmt::format(R"(<font point-size="9" color="{}">{}</font>)", colour, text);
}

std::string graph_begin(std::string_view attributes, const Heading& heading) {
  constexpr std::size_t kLongestLine = 120;
  const std::string ends = R"(<br align="left"/>)";
  const auto line = [](const std::string& text) { return label_text(text, kLongestLine); };
  std::string label;
  if (!heading.title.empty()) {
    label = fmt::format(R"(<font point-size="14"><b>{}</b></font>{}{}{})", line(heading.title),
                        ends, small(" "), ends);
  }
  for (const std::string& text : heading.caption) label += small(line(text)) + ends;
  for (const std::string& text : heading.notes) label += small("note: " + line(text), kRed) + ends;
  label += small(" ");
  return fmt::format(
      "digraph zerolab {{\n"
      "  graph [{}, bgcolor=white, pad=0.2, labelloc=t, labeljust=l, label=<{}>]\n"
      "  graph [fontname=\"Helvetica,Arial,sans-serif\", fontsize=11, fontcolor=\"{}\"]\n"
      "  node [fontname=\"Helvetica,Arial,sans-serif\", fontsize=11, fontcolor=\"{}\"]\n"
      "  edge [fontname=\"Helvetica,Arial,sans-serif\", fontsize=10, fontcolor=\"{}\"]\n",
      attributes, label, kInk, kInk, kInk);
}

}  // namespace zerolab::diagram
