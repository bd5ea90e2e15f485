#pragma once

#include <string>
#include <string_view>

#include "lab/table.hpp"
#include "stages/engine/training.hpp"

namespace zerolab {

/// Bytes as a terminal may have them: newlines and valid UTF-8 as they are; of anything else, such
/// as control characters, each byte as "\x1b".
std::string printable(std::string_view bytes);

/// A text that the model wrote, under a line about how. Its lines begin with a bar, those of the
/// prompt with an arrow:
///
///  after step 300: 24 bytes, temperature 0.8, seed 1
/// ---------------------------------------------------
///  > The GNU
///  |         General Public
///  | License
std::string generated_text(const Generation& generation, const Sampling& sampling, Style style);

}  // namespace zerolab
