#include "tests/support/described_model.hpp"

#include <utility>

namespace zerolab::test {

Part linear_part(std::string name, std::int64_t in, std::int64_t out) {
  return {.kind = Part::Kind::linear, .name = std::move(name), .in = in, .out = out};
}
Part norm_part(std::string name, std::int64_t width) {
  return {.kind = Part::Kind::norm, .name = std::move(name), .in = width, .out = width};
}
Part gelu_part(std::string name, std::int64_t width) {
  return {.kind = Part::Kind::gelu, .name = std::move(name), .in = width, .out = width};
}
Part scale_part(std::string name, std::int64_t width, std::string lender) {
  return {.kind = Part::Kind::scale,
          .name = std::move(name),
          .in = width,
          .out = width,
          .lender = std::move(lender)};
}
Part group_part(std::string name, std::vector<Part> parts) {
  Part part{.kind = Part::Kind::group, .name = std::move(name)};
  if (!parts.empty()) {
    part.in = parts.front().in;
    part.out = parts.back().out;
  }
  part.parts = std::move(parts);
  return part;
}

}  // namespace zerolab::test
