#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "stages/comm/communicator.hpp"

namespace zerolab {

/// What one rank saw.
struct Conformance {
  std::vector<std::string> problems;
  std::uint64_t hash = 0;  // of the bits of every result: equal on every transport
};

/// Calls every collective with every kind of input and compares with what it should do. All ranks
/// call it. What a transport does when a rank fails is tested elsewhere: that ends a run.
Conformance check_conformance(Communicator& communicator);

}  // namespace zerolab
