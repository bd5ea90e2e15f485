#pragma once

#include <string>
#include <string_view>

#include "stages/comm/link.hpp"

namespace zerolab {

/// "bandwidth=1GB/s,latency=20us", or one of the two. Bandwidth in bytes (B, KB, MiB...) or bits
/// (Kbit, Mbit, Gbit: powers of 1000) a second; latency in ns, us, ms or s. Throws Error
/// (Code::usage).
Link parse_link(std::string_view text);

/// "bandwidth=1e+09B/s,latency=2e-05s"; "none".
std::string to_string(const Link& link);

}  // namespace zerolab
