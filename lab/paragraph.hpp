#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace zerolab {

/// Words of a text in lines of at most so many columns; longer words stand alone.
std::vector<std::string> wrapped_lines(std::string_view text, std::size_t width);

/// A text of paragraphs, with blank lines between them, wrapped and indented. What is indented by
/// four blanks already, a command or a message, keeps its lines.
std::string wrapped(std::string_view text, std::size_t width, std::size_t indent);

}  // namespace zerolab
