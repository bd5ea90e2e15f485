#pragma once

#include <string>
#include <string_view>

#include "stages/base/types.hpp"

namespace zerolab {

/// "64MiB", "1.5 GB" or "4096" in bytes. KB, MB, GB, TB are powers of 1000; KiB, MiB, GiB, TiB are
/// powers of 1024. `flag` is for messages. Throws Error (Code::usage).
Index parse_byte_size(std::string_view text, const std::string& flag);

}  // namespace zerolab
