#include "stages/base/hash.hpp"

#include "tests/support/catch.hpp"

using namespace zerolab;

TEST_CASE("mix64 is the finaliser of SplitMix64") {
  // The first outputs of SplitMix64 seeded with 0: mix64 of multiples of its increment.
  constexpr std::uint64_t kIncrement = 0x9E3779B97F4A7C15;
  CHECK(mix64(kIncrement) == 0xE220A8397B1DCDAF);
  CHECK(mix64(2 * kIncrement) == 0x6E789E6AA1B965F4);
  CHECK(mix64(3 * kIncrement) == 0x06C45D188009454F);
}

TEST_CASE("an element's hash depends on parameter, position and every bit") {
  const std::uint64_t hash = hash_element(1, 2, 3);
  CHECK(hash != hash_element(2, 2, 3));
  CHECK(hash != hash_element(1, 3, 3));
  CHECK(hash != hash_element(2, 1, 3));
  for (int bit = 0; bit < 32; ++bit) CHECK(hash != hash_element(1, 2, 3U ^ (1U << bit)));
}
