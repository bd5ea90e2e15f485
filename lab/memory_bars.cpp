#include "lab/memory_bars.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace zerolab {
namespace {

struct Shade {
  Category category;
  std::string_view label, unicode, ascii;

  std::string_view mark(Style style) const { return style == Style::unicode ? unicode : ascii; }
};
constexpr std::array kShades{
    Shade{Category::parameters, "parameters", "█", "P"},
    Shade{Category::gradients, "gradients", "▓", "G"},
    Shade{Category::optimizer, "optimizer", "▒", "O"},
    Shade{Category::activations, "activations", "░", "a"},
    Shade{Category::gather_buffers, "gather", "◆", "g"},
    Shade{Category::reduce_buffers, "reduce", "◇", "r"},
    Shade{Category::workspace, "workspace", "·", "w"},
    Shade{Category::checkpoint, "checkpoint", "▪", "c"},
};

std::string legend(const std::vector<MemoryBar>& bars, Style style) {
  std::string text = " peak of rank 0:";
  for (const Shade& shade : kShades) {
    const bool shown = std::any_of(bars.begin(), bars.end(), [&](const MemoryBar& bar) {
      return bar.peak[shade.category] > 0;
    });
    if (shown) text += fmt::format(" {} {}", shade.mark(style), shade.label);
  }
  return text + '\n';
}

}  // namespace

std::string memory_bars(const std::vector<MemoryBar>& bars, Style style) {
  constexpr double kWidth = 84;
  Index longest = 1;
  for (const MemoryBar& bar : bars) longest = std::max(longest, bar.peak.total());
  const auto column = [longest](Index bytes) {
    return static_cast<Index>(static_cast<double>(bytes) / static_cast<double>(longest) * kWidth +
                              0.5);
  };
  std::string text = legend(bars, style);
  for (const MemoryBar& bar : bars) {
    text += fmt::format(" {} ", bar.label);
    Index before = 0;
    for (const Shade& shade : kShades) {
      const Index after = before + bar.peak[shade.category];
      for (Index i = column(before); i < column(after); ++i) text += shade.mark(style);
      before = after;
    }
    text += fmt::format(" {}\n", human_bytes(bar.peak.total()));
  }
  return text;
}

}  // namespace zerolab
