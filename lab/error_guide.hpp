#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace zerolab {

/// docs/errors.md, as it was when the program was built.
std::string_view error_page();

/// A paragraph of a section without its Markdown, or lines of code as they are.
struct GuideBlock {
  enum class Part { text, example, see_it, way_out };
  Part part = Part::text;
  std::string text;
  bool code = false;
};

/// What the page says about one error code.
struct ErrorSection {
  std::string code;  // "ZL301"
  std::string title;
  int exit_status = 0;
  std::string exit_meaning;  // "out of memory"
  std::vector<GuideBlock> blocks;

  /// All blocks of a part, empty lines between; empty if there is none.
  std::string part(GuideBlock::Part wanted) const;
};

/// The sections of such a page, in its order. They may have paragraphs and indented code only: the
/// first code is the example, that behind "**See it**:" a command that leads to the error.
std::vector<ErrorSection> error_sections(std::string_view page);

}  // namespace zerolab
