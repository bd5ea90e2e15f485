#include "visualize/diagram/canvas.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace zerolab::diagram {
namespace {

constexpr double kPointsPerInch = 72;

std::string names_of(const Look& look) {
  std::string text;
  if (!look.id.empty()) text += fmt::format(", id=\"{}\"", look.id);
  if (!look.classes.empty()) text += fmt::format(", class=\"{}\"", look.classes);
  return text;
}

}  // namespace

// Graphviz has nodes by their middle, and y grows upwards.
std::string Canvas::at(const Box& box) const {
  constexpr double kLeft = 8;  // where headings begin
  return fmt::format("pos=\"{:.1f},{:.1f}\", width={:.4f}, height={:.4f}",
                     kLeft + box.x + box.width / 2, -(box.y + box.height / 2),
                     box.width / kPointsPerInch, box.height / kPointsPerInch);
}

void Canvas::box(const Box& box, const Look& look, std::string_view text) {
  drawn_ += fmt::format(
      "  n{} [{}, shape=box, style=\"{}\", fillcolor=\"{}\", color=\"{}\", label=<{}>{}]\n",
      count_++, at(box), look.style, look.fill, look.line, text.empty() ? " " : text,
      names_of(look));
}

void Canvas::hatched(const Box& box, const Look& look) {
  constexpr double kStripe = 2;
  const auto stripes =
      std::clamp<std::size_t>(static_cast<std::size_t>(box.width / kStripe), 2, 400);
  std::string fill;
  for (std::size_t i = 0; i < stripes; ++i) {
    fill += fmt::format("{}{}", i > 0 ? ":" : "", i % 2 == 0 ? "white" : "#8A949E");
  }
  this->box(box, {.fill = fill,
                  .line = look.line,
                  .style = "striped",
                  .id = look.id,
                  .classes = look.classes});
}

void Canvas::text(const Box& box, std::string_view text, Align align) {
  const char* where = align == Align::left ? "left" : align == Align::right ? "right" : "center";
  drawn_ += fmt::format(
      "  n{} [{}, shape=none, label=<<table border=\"0\" cellborder=\"0\" cellspacing=\"0\" "
      "cellpadding=\"0\"><tr><td width=\"{:.0f}\" align=\"{}\">{}</td></tr></table>>]\n",
      count_++, at(box), box.width, where, text.empty() ? " " : text);
}

std::string Canvas::point(Point place) {
  std::string name = fmt::format("n{}", count_++);
  drawn_ += fmt::format("  {} [{}, style=invis, label=\"\"]\n", name, at({place.x, place.y, 0, 0}));
  return name;
}

void Canvas::line(Point from, Point to, const Look& look, bool arrow) {
  const std::string tail = point(from), head = point(to);
  drawn_ += fmt::format("  {} -> {} [color=\"{}\", style=\"{}\", arrowhead={}{}]\n", tail, head,
                        look.line, look.style == "filled" ? "solid" : look.style,
                        arrow ? "normal" : "none", names_of(look));
}

std::string Canvas::dot(const Heading& heading) const {
  return graph_begin("layout=nop, splines=line, outputorder=edgesfirst", heading) +
         "  node [shape=box, fixedsize=true, fontsize=9, margin=0, penwidth=0.7]\n"
         "  edge [penwidth=0.9, arrowsize=0.6]\n" +
         drawn_ + "}\n";
}

bool fits(std::size_t characters, double width) {
  constexpr double kWide = 5.8;  // of most fonts' average character
  return static_cast<double>(characters) * kWide <= width;
}

}  // namespace zerolab::diagram
