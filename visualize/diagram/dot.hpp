#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace zerolab::diagram {

// What all pictures share. Colours are those of Okabe and Ito, which colour-blind readers tell
// apart; wherever one means something, a line style, a pattern or a word says it as well.

inline constexpr const char* kInk = "#222222";
inline constexpr const char* kMuted = "#5F6B76";
inline constexpr const char* kFaint = "#B4BCC4";
inline constexpr const char* kBlue = "#0072B2";
inline constexpr const char* kOrange = "#B35900";  // darker than theirs: text has to be read
inline constexpr const char* kRed = "#C1121F";

/// What stands above a picture, as plain texts.
struct Heading {
  std::string title;                 // empty: none
  std::vector<std::string> caption;  // what there is to see, a line each
  std::vector<std::string> notes;    // what the log lacks, a line each
};

/// The beginning of a graph, up to its first node; `attributes` are the graph's own. The graph ends
/// with "}".
std::string graph_begin(std::string_view attributes, const Heading& heading);

/// Text in a label, small and in grey. The text is escaped already.
std::string small(std::string_view text, std::string_view colour = kMuted);

}  // namespace zerolab::diagram
