#pragma once

#include <array>
#include <stdexcept>
#include <string>
#include <string_view>

namespace zerolab::diagram {

/// A picture that cannot be drawn here; `what()` says why.
struct Undrawable : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// What render() writes.
inline constexpr std::array<std::string_view, 4> kFormats{"dot", "svg", "png", "pdf"};

/// A graph in Graphviz's language (DOT), drawn by libgvc in memory: the bytes of a file of that
/// format; as "dot" the graph itself. One call at a time: libgvc keeps state of its own. Throws
/// Undrawable.
std::string render(const std::string& dot, const std::string& format);

}  // namespace zerolab::diagram
