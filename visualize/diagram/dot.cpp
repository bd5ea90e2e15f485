#include "visualize/diagram/dot.hpp"

#include <fmt/format.h>

#include "visualize/diagram/text.hpp"

namespace zerolab::diagram {

std::string small(std::string_view text, std::string_view colour) {
  return fmt::format(R"(<font point-size="9" color="{}">{}</font>)", colour, text);
}

std::string graph_begin(std::string_view attributes, std::string_view title,
                        const std::vector<std::string>& notes) {
  constexpr std::size_t kLongestNote = 110;
  std::string label;
  if (!title.empty()) {
    label = fmt::format(R"(<font point-size="14"><b>{}</b></font><br align="left"/>)",
                        label_text(title, kLongestNote));
  }
  for (const std::string& note : notes) {
    label += small("note: " + label_text(note, kLongestNote), kRed) + R"(<br align="left"/>)";
  }
  if (label.empty()) label = " ";
  return fmt::format(
      "digraph zerolab {{\n"
      "  graph [{}, bgcolor=white, pad=0.2, labelloc=t, labeljust=l, label=<{}>]\n"
      "  graph [fontname=\"Helvetica,Arial,sans-serif\", fontsize=11, fontcolor=\"{}\"]\n"
      "  node [fontname=\"Helvetica,Arial,sans-serif\", fontsize=11, fontcolor=\"{}\"]\n"
      "  edge [fontname=\"Helvetica,Arial,sans-serif\", fontsize=10, fontcolor=\"{}\"]\n",
      attributes, label, kInk, kInk, kInk);
}

}  // namespace zerolab::diagram
