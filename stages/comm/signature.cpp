#include "stages/comm/signature.hpp"

#include <fmt/format.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <array>

namespace zerolab {

std::string_view name_of(Op op) {
  switch (op) {
    case Op::all_gather:
      return "all_gather";
    case Op::reduce_scatter:
      return "reduce_scatter";
    case Op::all_reduce:
      return "all_reduce";
    case Op::broadcast:
      return "broadcast";
    case Op::barrier:
      return "barrier";
    case Op::control:
      return "control";
    case Op::gather:
      return "gather";
  }
  return "?";
}

std::uint64_t fingerprint(const Signature& signature) {
  const std::array<Index, 4> numbers{signature.sequence, static_cast<Index>(signature.op),
                                     signature.elements, static_cast<Index>(signature.dtype)};
  return XXH64(signature.owner.data(), signature.owner.size(),
               XXH64(numbers.data(), sizeof numbers, 0));
}

std::string describe(const Signature& signature) {
  std::string text{name_of(signature.op)};
  if (signature.sequence > 0) text += fmt::format(" {}", signature.sequence);
  if (!signature.owner.empty()) text += fmt::format(" of '{}'", signature.owner);
  if (signature.elements > 0) {
    text += fmt::format(", {} elements {}", signature.elements, name_of(signature.dtype));
  }
  if (!signature.where.empty()) text += fmt::format(" ({})", signature.where);
  return text;
}

}  // namespace zerolab
