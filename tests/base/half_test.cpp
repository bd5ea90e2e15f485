#include "stages/base/half.hpp"

#include <vector>

#include "tests/support/catch.hpp"
#include "tests/support/sixteen_bits.hpp"

using namespace zerolab;
using namespace zerolab::test;

namespace {

constexpr std::uint32_t kPatterns = 0x10000;

// The first patterns that are wrong: a CHECK for each of 65,536 would take seconds.
using Patterns = std::vector<std::uint32_t>;
void note(Patterns& wrong, std::uint32_t pattern, bool right) {
  constexpr std::size_t kEnough = 8;
  if (!right && wrong.size() < kEnough) wrong.push_back(pattern);
}

std::uint32_t bits_of(float value) { return std::bit_cast<std::uint32_t>(value); }
bool same_bits(float value, double want) {
  return bits_of(value) == bits_of(static_cast<float>(want));
}

template <typename T>
constexpr Format kFormat = std::is_same_v<T, Bf16> ? kBf16 : kFp16;

template <typename T>
float value_of(std::uint32_t bits) {
  return widened(T{static_cast<std::uint16_t>(bits)});
}

// What `value` rounds to, its sign and that of -value agreeing; else no pattern at all.
template <typename T>
std::uint32_t pattern_of(float value) {
  const std::uint32_t bits = rounded<T>(value).bits, negated = rounded<T>(-value).bits;
  return (bits ^ 0x8000U) == negated ? bits : kPatterns;
}

template <typename T>
std::uint32_t pattern_of(double value) {
  return pattern_of<T>(static_cast<float>(value));
}

}  // namespace

TEMPLATE_TEST_CASE("every 16-bit pattern has its value and rounds back to itself", "[half]", Bf16,
                   Fp16) {
  const Format format = kFormat<TestType>;
  Patterns wrong_value, not_itself;
  for (std::uint32_t bits = 0; bits < kPatterns; ++bits) {
    const float value = value_of<TestType>(bits);
    const double want = decoded(format, bits);
    const std::uint32_t back = rounded<TestType>(value).bits;
    if (std::isnan(want)) {
      // Quiet, with its sign.
      const std::uint32_t quiet = 1U << (format.significand_bits - 1);
      const std::uint32_t must = (bits & 0x8000U) | format.infinity() | quiet;
      note(wrong_value, bits, std::isnan(value) && std::signbit(value) == (bits > 0x8000U));
      note(not_itself, bits, (back & must) == must && (back & 0x8000U) == (bits & 0x8000U));
    } else {
      note(wrong_value, bits, same_bits(value, want));
      note(not_itself, bits, back == bits);
    }
  }
  CHECK(wrong_value == Patterns{});
  CHECK(not_itself == Patterns{});
}

TEMPLATE_TEST_CASE("rounding to 16 bits is to the nearest, ties to even", "[half]", Bf16, Fp16) {
  const Format format = kFormat<TestType>;
  Patterns below_half, at_half, above_half;
  // From zero, over the denormals, to halfway between the largest number and what would follow.
  for (std::uint32_t bits = 0; bits < format.infinity(); ++bits) {
    const double half = (unbounded(format, bits) + unbounded(format, bits + 1)) / 2;
    const auto middle = static_cast<float>(half);
    REQUIRE(static_cast<double>(middle) == half);
    note(below_half, bits, pattern_of<TestType>(std::nextafter(middle, 0.0F)) == bits);
    note(at_half, bits, pattern_of<TestType>(middle) == bits + (bits & 1U));
    const float infinity = std::numeric_limits<float>::infinity();
    note(above_half, bits, pattern_of<TestType>(std::nextafter(middle, infinity)) == bits + 1);
  }
  CHECK(below_half == Patterns{});
  CHECK(at_half == Patterns{});
  CHECK(above_half == Patterns{});
}

TEMPLATE_TEST_CASE("rounding to 16 bits is right for floats of every size", "[half]", Bf16, Fp16) {
  const Format format = kFormat<TestType>;
  Patterns wrong;
  for (std::uint64_t i = 0; i <= 0x7F800000U; i += 9973) {
    const auto value = std::bit_cast<float>(static_cast<std::uint32_t>(i));
    const std::uint32_t want = encoded(format, static_cast<double>(value));
    note(wrong, static_cast<std::uint32_t>(i), pattern_of<TestType>(value) == want);
  }
  CHECK(wrong == Patterns{});
}

TEST_CASE("fp16 has its edges where IEEE 754 puts them", "[half]") {
  CHECK(value_of<Fp16>(0x3C00) == 1.0F);
  CHECK(value_of<Fp16>(0x3555) == 0.333251953125F);
  CHECK(value_of<Fp16>(0x7BFF) == 65504.0F);
  CHECK(value_of<Fp16>(0x0400) == 0x1p-14F);
  CHECK(value_of<Fp16>(0x0001) == 0x1p-24F);
  CHECK(pattern_of<Fp16>(65519.996F) == 0x7BFF);
  CHECK(pattern_of<Fp16>(65520.0F) == 0x7C00);
  CHECK(pattern_of<Fp16>(3e38F) == 0x7C00);
  CHECK(pattern_of<Fp16>(0x1p-25F) == 0);
  CHECK(pattern_of<Fp16>(std::nextafter(0x1p-25F, 1.0F)) == 1);
  CHECK(pattern_of<Fp16>(1e-9F) == 0);
  CHECK(pattern_of<Fp16>(0x1.FF8p-15F) == 0x03FF);  // the largest denormal
  CHECK(pattern_of<Fp16>(0x1.FFCp-15F) == 0x0400);  // halfway from there to the smallest normal
}

TEST_CASE("bf16 is the upper half of a float", "[half]") {
  CHECK(value_of<Bf16>(0x3F80) == 1.0F);
  CHECK(value_of<Bf16>(0x7F7F) == 0x1.FEp127F);
  CHECK(value_of<Bf16>(0x0001) == 0x1p-133F);
  CHECK(pattern_of<Bf16>(0x1.FEFFFEp127F) == 0x7F7F);
  CHECK(pattern_of<Bf16>(0x1.FFp127F) == 0x7F80);
  CHECK(pattern_of<Bf16>(std::numeric_limits<float>::max()) == 0x7F80);
  CHECK(pattern_of<Bf16>(0x1p-134F) == 0);
  CHECK(pattern_of<Bf16>(0x1.8p-133F) == 2);
  CHECK(pattern_of<Bf16>(std::numeric_limits<float>::denorm_min()) == 0);
}

TEMPLATE_TEST_CASE("zeros and infinities keep their sign, and NaN never becomes either", "[half]",
                   Bf16, Fp16) {
  const std::uint32_t infinity = kFormat<TestType>.infinity();
  CHECK(rounded<TestType>(0.0F).bits == 0);
  CHECK(rounded<TestType>(-0.0F).bits == 0x8000);
  CHECK(rounded<TestType>(std::numeric_limits<float>::infinity()).bits == infinity);
  CHECK(rounded<TestType>(-std::numeric_limits<float>::infinity()).bits == (0x8000U | infinity));
  // The payload may lie in bits that are cut off, or be all ones, so that rounding it would carry.
  for (const std::uint32_t bits : {0x7F800001U, 0x7F80FFFFU, 0x7FC00000U, 0x7FFFFFFFU}) {
    for (const std::uint32_t sign : {0U, 0x80000000U}) {
      const std::uint32_t nan = rounded<TestType>(std::bit_cast<float>(sign | bits)).bits;
      INFO("NaN " << bits << " becomes " << nan);
      CHECK((nan & 0x7FFFU) > infinity);
      CHECK((nan & 0x8000U) == sign >> 16);
    }
  }
}
