#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "stages/base/dtype.hpp"
#include "stages/base/types.hpp"

namespace zerolab {

enum class Op { all_gather, reduce_scatter, all_reduce, broadcast, barrier, control, gather };
std::string_view name_of(Op op);

/// What one rank says of a collective it takes part in: what must be alike on all ranks, and where
/// in its program it is, for messages.
struct Signature {
  Index sequence = 0;  // counts this rank's collectives from 1; 0: outside of a CommStream
  Op op = Op::barrier;
  Index elements = 0;  // with padding
  Dtype dtype = Dtype::bytes;
  std::string owner = {};  // whose data it moves: "head.weight"
  std::string where = {};  // what the rank is doing: "step 3, forward of 'head'"
};

/// Equal on ranks that are at the same collective; different ones differ, but for one case in 2^64.
std::uint64_t fingerprint(const Signature& signature);

/// "all_gather 17 of 'head.weight', 16448 elements fp32 (step 3, forward of 'head')"
std::string describe(const Signature& signature);

}  // namespace zerolab
