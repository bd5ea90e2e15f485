#include "visualize/diagram/partition.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "visualize/diagram/canvas.hpp"
#include "visualize/diagram/text.hpp"
#include "visualize/verify/reference.hpp"

namespace zerolab::diagram {
namespace {

using log::Count;

constexpr Count kMostRanks = 64;
constexpr std::size_t kMostRows = 400;

constexpr double kRow = 15, kBar = 11;  // heights, in points
constexpr double kNames = 210, kNumbers = 62, kBarWidth = 460, kNotes = 250;
constexpr double kLeastPadding = 4;
constexpr double kBarLeft = kNames + kNumbers + 12;

// A colour a rank, again from the first after the eighth; its number stands in it.
constexpr std::array<const char*, 8> kTints{"#B9D7EA", "#F6D9A6", "#B5DFCF", "#F0CBDF",
                                            "#D9D9D9", "#F5C6AE", "#D3ECFA", "#F3EDA8"};

std::string owner_look(Count rank) { return kTints[rank % kTints.size()]; }

/// Equal slices of a buffer of `padded` elements, of which `real` are not padding, as far as they
/// lie in [begin, end); places are seen from begin.
std::vector<Part> cut(Count padded, Count real, Count ranks, Count begin, Count end) {
  std::vector<Part> parts;
  const Count slice = padded / ranks;
  for (Count rank = 0; rank < ranks; ++rank) {
    const Count from = std::max(begin, rank * slice), to = std::min(end, (rank + 1) * slice);
    if (from >= to) continue;
    const Count middle = std::clamp(real, from, to);
    if (from < middle) parts.push_back({from - begin, middle - begin, rank, false});
    if (middle < to) parts.push_back({middle - begin, to - begin, rank, true});
  }
  return parts;
}

Count trainable_in(const log::Run& run, std::size_t parameters) {
  Count sum = 0;
  for (std::size_t i = 0; i < parameters; ++i) {
    if (run.parameters[i].trainable) sum += run.parameters[i].numel;
  }
  return sum;
}

/// A bar of `all` elements, cut in parts.
void draw_bar(Canvas& canvas, double y, Count all, const std::vector<Part>& parts) {
  const double scale = kBarWidth / static_cast<double>(std::max<Count>(all, 1));
  for (const Part& part : parts) {
    Box box{kBarLeft + static_cast<double>(part.begin) * scale, y,
            static_cast<double>(part.end - part.begin) * scale, kBar};
    if (part.padding) {  // to be seen however little it is
      const double least = std::max(0.0, kLeastPadding - box.width);
      box.x -= least;
      box.width += least;
      canvas.hatched(box, {.line = kMuted, .classes = "padding"});
      continue;
    }
    const std::string name = fmt::to_string(part.owner);
    canvas.box(box, {.fill = owner_look(part.owner), .classes = "piece"},
               fits(name.size(), box.width) ? name : "");
  }
}

/// The map of one run, downwards from `y`; what is below it is returned.
class Map {
 public:
  Map(Canvas& canvas, const log::Run& run, double y)
      : canvas_(canvas), run_(run), padding_(run), y_(y) {}

  double draw() {
    line(fmt::format("<b>stage {}, {} rank{}</b>", run_.stage, run_.world_size,
                     run_.world_size == 1 ? "" : "s"),
         "");
    if (run_.stage == 0) {
      line(small("nothing is partitioned: every rank keeps all parameters, gradients and optimizer "
                 "states"),
           "");
      return y_ + kRow;
    }
    if (run_.stage < 3) draw_flat_buffer();
    const std::size_t all = run_.parameters.size();
    for (std::size_t i = 0; i < std::min(all, kMostRows); ++i) draw_parameter(i);
    if (all > kMostRows) line(small(fmt::format("and {} more", all - kMostRows)), "");
    return y_ + kRow;
  }

 private:
  void line(const std::string& text, const std::string& number) {
    const double width = number.empty() ? kBarLeft + kBarWidth : kNames;
    canvas_.text({0, y_, width, kBar}, text);
    if (!number.empty()) {
      canvas_.text({kNames, y_, kNumbers, kBar}, number, Canvas::Align::right);
    }
    if (number.empty()) y_ += kRow;
  }

  void note(const std::string& text) {
    if (!text.empty()) canvas_.text({kBarLeft + kBarWidth + 8, y_, kNotes, kBar}, small(text));
    y_ += kRow;
  }

  // All of it, end to end, as it is cut.
  void draw_flat_buffer() {
    const Count padded = padding_.flat(), real = trainable_in(run_, run_.parameters.size());
    line("<b>flat buffer</b>", with_commas(padded));
    draw_bar(canvas_, y_, padded, cut(padded, real, run_.world_size, 0, padded));
    note(fmt::format("{} a rank, {} of padding", with_commas(padded / run_.world_size),
                     with_commas(padded - real)));
  }

  void draw_parameter(std::size_t place) {
    const log::Parameter& parameter = run_.parameters[place];
    const std::vector<Part> parts = parts_of(run_, place);
    line(label_text(parameter.name), with_commas(parameter.numel));
    if (parts.empty()) {
      canvas_.box({kBarLeft, y_, kBarWidth, kBar}, {.line = kFaint, .classes = "whole"},
                  small(parameter.numel == 0 ? "empty" : "every rank"));
    } else {
      draw_bar(canvas_, y_, parts.back().end, parts);
    }
    note(about(parameter, padding_.elements(place)));
  }

  std::string about(const log::Parameter& parameter, Count padded) const {
    std::string text = parameter.trainable ? "" : "frozen";
    if (run_.stage < 3 || parameter.numel == 0) return text;
    text +=
        fmt::format("{}{} a rank", text.empty() ? "" : ", ", with_commas(padded / run_.world_size));
    if (padded > parameter.numel) {
      text += fmt::format(", {} of padding", with_commas(padded - parameter.numel));
    }
    return text + (parameter.persistent ? ", persists: whole too" : "");
  }

  Canvas& canvas_;
  const log::Run& run_;
  verify::Padding padding_;
  double y_;
};

}  // namespace

std::vector<Part> parts_of(const log::Run& run, std::size_t parameter) {
  const log::Parameter& here = run.parameters[parameter];
  const verify::Padding padding(run);
  if (run.stage == 3) {
    const Count padded = padding.elements(parameter);
    return cut(padded, here.numel, run.world_size, 0, padded);
  }
  if (run.stage == 0 || !here.trainable) return {};
  const Count begin = trainable_in(run, parameter);
  return cut(padding.flat(), padding.flat(), run.world_size, begin, begin + here.numel);
}

std::string partition_dot(const std::vector<log::RunFolder>& runs) {
  Canvas canvas;
  double y = 0;
  for (const log::RunFolder& run : runs) {
    if (run.run.world_size > kMostRanks) {
      throw log::Unreadable(fmt::format("{} has {} ranks, and a map has room for {}",
                                        run.path.string(), run.run.world_size, kMostRanks),
                            "draw a run with fewer ranks: ownership follows the same rule");
    }
    y = Map(canvas, run.run, y).draw() + kRow;
  }
  return canvas.dot({"who owns what",
                     {"numbers in a bar are ranks, those before it elements; hatched: padding, "
                      "always zero",
                      "stages 1 and 2: of optimizer states, in stage 2 of gradients too; stage 3: "
                      "of parameters as well"},
                     {}});
}

}  // namespace zerolab::diagram
