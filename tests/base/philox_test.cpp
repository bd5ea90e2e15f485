#include "stages/base/philox.hpp"

#include <cmath>

#include "tests/support/catch.hpp"

using namespace zerolab;

TEST_CASE("Philox gives the known answers of its authors") {
  // Random123, kat_vectors, philox4x32 with 10 rounds.
  constexpr std::uint64_t kOnes = ~std::uint64_t{0};
  const Philox::Block zeros = Philox(0)(0, 0);
  CHECK(zeros.word[0] == 0x6627E8D5);
  CHECK(zeros.word[1] == 0xE169C58D);
  CHECK(zeros.word[2] == 0xBC57AC4C);
  CHECK(zeros.word[3] == 0x9B00DBD8);
  const Philox::Block ones = Philox(kOnes)(kOnes, kOnes);
  CHECK(ones.word[0] == 0x408F276D);
  CHECK(ones.word[1] == 0x41C83B0E);
  CHECK(ones.word[2] == 0xA20BC7C6);
  CHECK(ones.word[3] == 0x6D5451FD);
  // Digits of pi: every word of counter and key has its own place.
  const Philox::Block pi = Philox(0x299F31D0A4093822)(0x0370734413198A2E, 0x85A308D3243F6A88);
  CHECK(pi.word[0] == 0xD16CFE09);
  CHECK(pi.word[1] == 0x94FDCCEB);
  CHECK(pi.word[2] == 0x5001E420);
  CHECK(pi.word[3] == 0x24126EA1);
}

TEST_CASE("almost normal samples have mean 0 and the variance asked for") {
  constexpr int kSamples = 200000;
  constexpr double kDeviation = 0.5;
  const Philox philox(42);
  double sum = 0, squares = 0, fourths = 0;
  for (std::uint64_t i = 0; i < kSamples; ++i) {
    const double x = static_cast<double>(almost_normal(philox(3, i), 0.5F)) / kDeviation;
    sum += x;
    squares += x * x;
    fourths += x * x * x * x;
  }
  // Five standard errors: 1/sqrt(n) of the mean, sqrt(2/n) of the variance. The fourth moment of a
  // sum of eight uniforms is 3 - 1.2/8 = 2.85, its standard error about sqrt(80/n).
  CHECK(std::abs(sum / kSamples) < 5 / std::sqrt(kSamples));
  CHECK(std::abs(squares / kSamples - 1) < 5 * std::sqrt(2.0 / kSamples));
  CHECK(std::abs(fourths / kSamples - 2.85) < 5 * std::sqrt(80.0 / kSamples));
}
