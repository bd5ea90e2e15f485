#include <bit>
#include <map>

#include "tests/device/support.hpp"
#include "tests/support/catch.hpp"

using namespace zerolab;
using namespace zerolab::test;

namespace {

// A natural number in units of 2^-298, the square of the smallest float: 32-bit digits, so that
// nothing is rounded and nothing is shared with the code under test.
struct Natural {
  std::map<int, std::uint64_t> digits;

  void add(std::uint64_t value, int shift) {
    // In three parts of 32, 32 and the rest, each below 2^64 after the shift within a digit.
    const int digit = shift / 32, within = shift % 32;
    put(digit, (value & 0xFFFFFFFF) << within);
    put(digit + 1, (value >> 32) << within);
  }

  void put(int digit, std::uint64_t value) {
    while (value != 0) {
      std::uint64_t& place = digits[digit];
      const std::uint64_t sum = place + (value & 0xFFFFFFFF);
      place = sum & 0xFFFFFFFF;
      value = (value >> 32) + (sum >> 32);
      ++digit;
    }
  }

  bool operator==(const Natural& other) const { return nonzero() == other.nonzero(); }

  std::map<int, std::uint64_t> nonzero() const {
    std::map<int, std::uint64_t> result;
    for (const auto& [digit, value] : digits) {
      if (value != 0) result[digit] = value;
    }
    return result;
  }
};

Natural square_sum_reference(const Floats& values) {
  Natural sum;
  for (const float value : values) {
    if (value == 0) continue;
    int exponent = 0;
    const double fraction = std::frexp(std::abs(static_cast<double>(value)), &exponent);
    const auto significand = static_cast<std::uint64_t>(std::ldexp(fraction, 24));
    // value = significand 2^(exponent - 24); denormals have spare zeros at the end.
    const std::uint64_t square = significand * significand;
    const int shift = 2 * (exponent - 24) + 298;
    if (shift >= 0) {
      sum.add(square, shift);
    } else {
      sum.add(square >> -shift, 0);
    }
  }
  return sum;
}

Natural total(const SquareSum& sum) {
  Natural result;
  for (int e = 0; e < 255; ++e) {
    const auto [low, high] = sum.bucket[static_cast<std::size_t>(e)];
    const int shift = 2 * std::max(e, 1) - 2;
    result.add(low, shift);
    result.add(high, shift + 64);
  }
  return result;
}

// Every exponent, both signs, denormals, zeros and the largest there is.
Floats all_kinds() {
  Floats values{0.0F,
                -0.0F,
                std::numeric_limits<float>::max(),
                std::numeric_limits<float>::denorm_min(),
                -1e-42F,
                1.0F,
                -1.0F};
  const Philox philox(5);
  for (std::uint64_t i = 0; i < 3000; ++i) {
    const float value = std::bit_cast<float>(philox(0, i).word[0]);
    if (std::isfinite(value)) values.push_back(value);
  }
  return values;
}

}  // namespace

TEST_CASE("the sum of squares is exact for values of every size") {
  CpuBench bench;
  const Floats values = all_kinds();
  CHECK(total(bench.device.square_sum(values.data(), static_cast<Index>(values.size()))) ==
        square_sum_reference(values));
  for (const Index n : {0, 1, 3, 5, 33}) {
    const Floats some = random_floats(n, 1);
    CHECK(total(bench.device.square_sum(some.data(), n)) == square_sum_reference(some));
  }
}

TEST_CASE("the sum of squares does not depend on cut or order") {
  CpuBench bench;
  Floats values = all_kinds();
  const auto n = static_cast<Index>(values.size());
  const SquareSum whole = bench.device.square_sum(values.data(), n);
  for (const Index cut : {1, 7, 1000}) {
    SquareSum sum;
    for (Index begin = 0; begin < n; begin += cut) {
      sum += bench.device.square_sum(values.data() + begin, std::min(cut, n - begin));
    }
    CHECK(sum.bucket == whole.bucket);
  }
  std::reverse(values.begin(), values.end());
  CHECK(bench.device.square_sum(values.data(), n).bucket == whole.bucket);
}

TEST_CASE("the sum of many largest squares carries into the high word") {
  CpuBench bench;
  // Largest significands, more than a set of 64-bit buckets holds: 2^19 squares of 2^48.
  constexpr Index kCount = (Index{1} << 19) + 3;
  const float largest = std::bit_cast<float>(0x3FFFFFFFU);
  const Floats values(at(kCount), largest);
  const SquareSum sum = bench.device.square_sum(values.data(), kCount);
  CHECK(sum.bucket[0x7F][1] > 0);
  const double want = static_cast<double>(largest) * std::sqrt(static_cast<double>(kCount));
  CHECK(std::abs(sum.root() - want) <= 4e-16 * want);
}

TEST_CASE("adding sums of squares carries") {
  SquareSum a, b;
  a.bucket[9] = {~std::uint64_t{0}, 1};
  b.bucket[9] = {2, 3};
  a += b;
  CHECK(a.bucket[9] == std::array<std::uint64_t, 2>{1, 5});
}

TEST_CASE("the root is that of the exact sum") {
  CpuBench bench;
  const auto root = [&](const Floats& values) {
    return bench.device.square_sum(values.data(), static_cast<Index>(values.size())).root();
  };
  CHECK(root({}) == 0);
  CHECK(root({3, 4}) == 5);
  CHECK(root({-0x1p-149F}) == 0x1p-149);
  CHECK(root({0x1p-126F, 0x1p-127F}) == std::sqrt(1.25) * 0x1p-126);
  const float largest = std::numeric_limits<float>::max();  // its square is beyond fp32
  CHECK(root({largest, largest, largest, largest}) == 2 * static_cast<double>(largest));
  const Floats values = random_floats(1000, 1);
  double sum = 0;
  for (const float value : values) sum += static_cast<double>(value) * static_cast<double>(value);
  CHECK(std::abs(root(values) - std::sqrt(sum)) <= 1000 * 0x1p-53 * std::sqrt(sum));
}

TEST_CASE("a norm over something not finite says so") {
  CpuBench bench;
  const float infinity = std::numeric_limits<float>::infinity();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const auto sum = [&](const Floats& values) {
    return bench.device.square_sum(values.data(), static_cast<Index>(values.size()));
  };
  CHECK(sum({1, -infinity, 2}).root() == static_cast<double>(infinity));
  CHECK(std::isnan(sum({1, nan, 2}).root()));
  CHECK(std::isnan(sum({nan, infinity, nan, nan, nan}).root()));
  // Four NaNs whose squared significands add up to those of nine infinities.
  CHECK(std::isnan(sum({nan, nan, nan, nan}).root()));
  SquareSum both = sum({infinity});
  both += sum({-nan});
  CHECK(std::isnan(both.root()));
  CHECK(sum({1, infinity, infinity}).bucket[255] == std::array<std::uint64_t, 2>{2, 0});
}
