#pragma once

#include <string>
#include <string_view>

#include "visualize/diagram/dot.hpp"

namespace zerolab::diagram {

/// A place on a page: points (1/72 inch) from the left and from the top.
struct Point {
  double x = 0, y = 0;
};
struct Box {
  double x = 0, y = 0, width = 0, height = 0;  // x, y: the upper left corner
};

/// How a box or a line looks; colours as Graphviz takes them.
struct Look {
  std::string fill = "white", line = kInk, style = "filled";
  std::string id = {}, classes = {};
};

/// Pictures whose layout has a meaning: things stand where they are put, and Graphviz only draws.
/// Texts are escaped already (label_text).
class Canvas {
 public:
  enum class Align { left, centre, right };

  void box(const Box& box, const Look& look, std::string_view text = "");
  /// What is not there, padding: with stripes.
  void hatched(const Box& box, const Look& look = {});
  /// Within a box that is not drawn.
  void text(const Box& box, std::string_view text, Align align = Align::left);
  /// An arrow, or a line without a head.
  void line(Point from, Point to, const Look& look, bool arrow = false);

  /// The picture in DOT.
  std::string dot(const Heading& heading) const;

 private:
  std::string point(Point place);
  std::string at(const Box& box) const;

  std::string drawn_;
  std::size_t count_ = 0;
};

/// Whether a text of so many characters fits in, at the size of labels (9 points).
bool fits(std::size_t characters, double width);

}  // namespace zerolab::diagram
