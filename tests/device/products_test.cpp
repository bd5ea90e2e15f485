#include "tests/device/reference.hpp"
#include "tests/support/catch.hpp"

using namespace zerolab;
using namespace zerolab::test;

namespace {

double worst_product_error(const Product& p, bool with_bias) {
  CpuBench bench;
  const Floats a = random_floats(extent(p, p.a, p.m, p.k), 1);
  const Floats b = random_floats(extent(p, p.b, p.k, p.n), 2);
  const Floats bias = with_bias ? random_floats(p.n, 3) : Floats{};
  Floats c(at(extent(p, p.c, p.m, p.n)), 7.0F);  // what lies between the rows of c has to stay
  const ProductResult want = product(p, widened(a), widened(b), widened(bias), widened(c));
  bench.device.matmul(p, a.data(), b.data(), with_bias ? bias.data() : nullptr, c.data());
  Doubles allowed = want.magnitude;
  for (double& x : allowed) x *= kRounding * static_cast<double>(p.k + 2);
  return worst_error(c, want.value, allowed);
}

}  // namespace

TEST_CASE("a product of any size and orientation is right to rounding") {
  for (const Index m : {1, 3, 5, 33, 70}) {
    for (const Index n : {1, 3, 5, 33, 64}) {
      for (const Index k : {1, 3, 5, 33, 130}) {
        for (const bool transpose_a : {false, true}) {
          for (const bool transpose_b : {false, true}) {
            const bool with_bias = (m + n + k) % 4 == 1;
            INFO("m " << m << " n " << n << " k " << k << " " << transpose_a << transpose_b);
            CHECK(worst_product_error(plain_product(m, n, k, transpose_a, transpose_b),
                                      with_bias) <= 1);
          }
        }
      }
    }
  }
}

TEST_CASE("rows of a product may lie apart, and what is between them stays") {
  for (const bool transpose_a : {false, true}) {
    for (const bool transpose_b : {false, true}) {
      Product p = plain_product(17, 9, 11, transpose_a, transpose_b);
      p.a.leading += 3;
      p.b.leading += 5;
      p.c.leading += 2;
      CHECK(worst_product_error(p, false) <= 1);
      CHECK(worst_product_error(p, true) <= 1);
    }
  }
}

TEST_CASE("the heads of attention are a batch of strided slices") {
  for (const Product& product : attention_products()) {
    CHECK(worst_product_error(product, false) <= 1);
    CHECK(worst_product_error(product, true) <= 1);
  }
}

TEST_CASE("a batch stride of zero uses one matrix for every product") {
  Product p = plain_product(4, 6, 5);
  p.outer = 3;
  p.a.outer_stride = 20;
  p.c.outer_stride = 24;
  CHECK(worst_product_error(p, true) <= 1);
}

TEST_CASE("a product over nothing is its bias, or zero") {
  CpuBench bench;
  Product p = plain_product(3, 2, 0);
  p.c.leading = 3;
  Floats c(9, 7.0F);
  const Floats bias{1.0F, 2.0F};
  bench.device.matmul(p, nullptr, nullptr, bias.data(), c.data());
  CHECK(c == Floats{1, 2, 7, 1, 2, 7, 1, 2, 7});
  bench.device.matmul(p, nullptr, nullptr, nullptr, c.data());
  CHECK(c == Floats{0, 0, 7, 0, 0, 7, 0, 0, 7});
}

TEST_CASE("a product without rows or columns writes nothing") {
  CpuBench bench;
  const Floats in(8, 1.0F);
  Floats c(8, 7.0F);
  bench.device.matmul(plain_product(0, 2, 2), in.data(), in.data(), nullptr, c.data());
  bench.device.matmul(plain_product(2, 0, 2), in.data(), in.data(), in.data(), c.data());
  Product none = plain_product(2, 2, 2);
  none.inner = 0;
  bench.device.matmul(none, in.data(), in.data(), nullptr, c.data());
  CHECK(c == Floats(8, 7.0F));
}

TEST_CASE("a product overwrites what was there, even NaN") {
  CpuBench bench;
  const Floats a{1, 2}, b{3, 4};
  Floats c{std::numeric_limits<float>::quiet_NaN()};
  bench.device.matmul(plain_product(1, 1, 2), a.data(), b.data(), nullptr, c.data());
  CHECK(c == Floats{11});
}

TEST_CASE("rows are summed in their order") {
  CpuBench bench;
  // In another order 1 would be lost against 2^24, or kept.
  const Floats in{1, 5, 0x1p24F, 6, -0x1p24F, 7, 1, 8};
  Floats out(2, 7.0F);
  bench.device.sum_rows(4, 2, in.data(), out.data());
  CHECK(out == Floats{1, 26});
  bench.device.sum_rows(0, 2, in.data(), out.data());
  CHECK(out == Floats{0, 0});
}
