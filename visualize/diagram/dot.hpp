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

/// The beginning of a graph, up to its first node; `attributes` are the graph's own. It ends with
/// "}". `title` and `notes` are plain texts from a log.
std::string graph_begin(std::string_view attributes, std::string_view title,
                        const std::vector<std::string>& notes);

/// Text in a label, small and in grey. The text is escaped already.
std::string small(std::string_view text, std::string_view colour = kMuted);

}  // namespace zerolab::diagram
