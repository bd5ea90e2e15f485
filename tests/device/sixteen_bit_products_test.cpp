#include "tests/device/reference.hpp"
#include "tests/device/sixteen_bit.hpp"

// Products of 16-bit matrices against float64 on the same values. Where the processor multiplies
// bf16 itself, those products take another path through the device; what is promised is the same.

using namespace zerolab;
using namespace zerolab::test;

namespace {

constexpr Index kMostBytes = Index{4}
                             << 20;  // for what a product widens, unless two rows need more

/// Computes p on random matrices and checks every element of c, and what lies between its rows.
void check_product(const Format& format, const Product& p, bool with_bias) {
  INFO(name_of(format.dtype) << " " << p.outer << " x " << p.inner << " of m " << p.m << " n "
                             << p.n << " k " << p.k << (p.a.transposed ? " a^T" : "")
                             << (p.b.transposed ? " b^T" : "") << (with_bias ? " bias" : ""));
  CpuBench bench;
  const Halves a = random_halves(format, extent(p, p.a, p.m, p.k), 1);
  const Halves b = random_halves(format, extent(p, p.b, p.k, p.n), 2);
  const Halves bias = random_halves(format, with_bias ? p.n : 0, 3);
  const std::size_t n = at(extent(p, p.c, p.m, p.n));
  Halves c{format, std::vector<std::uint16_t>(n, encoded(format, 7))};
  const ProductResult want = product(p, widened(a), widened(b), widened(bias), Doubles(n, 7.0));
  bench.device.matmul(p, a.values(), b.values(), with_bias ? bias.values() : ConstValues(),
                      c.values());
  Doubles fp32_error = want.magnitude;  // 0 between the rows
  for (double& x : fp32_error) x *= kRounding * static_cast<double>(p.k + 2);
  check_agreement(c, want.value, fp32_error);
  CHECK(bench.ledger.live().total() == 0);
}

/// What c lies in stays as it was where c is not.
Product spread(Product p) {
  p.a.leading += 3;
  p.b.leading += 5;
  p.c.leading += 2;
  return p;
}

/// A batch whose matrices lie one behind the other.
Product batch_of(Product p, Index outer, Index inner) {
  p.outer = outer;
  p.inner = inner;
  p.a.inner_stride = p.m * p.k;
  p.b.inner_stride = p.k * p.n;
  p.c.inner_stride = p.m * p.n;
  p.a.outer_stride = inner * p.a.inner_stride;
  p.b.outer_stride = inner * p.b.inner_stride;
  p.c.outer_stride = inner * p.c.inner_stride;
  return p;
}

Index elements(const Product& p) { return p.outer * p.inner * (p.m * p.k + p.k * p.n + p.m * p.n); }

struct Spent {
  Index widened, scratchpads;
};

/// The most bytes that a product of zeros holds at a time.
Spent workspace_of(const Format& format, const Product& p, bool with_bias) {
  CpuBench bench;
  Index scratchpads = 0;
  bench.recorder.observe([&](const Stamp&, const Event& event) {
    const auto* alloc = std::get_if<AllocEvent>(&event);
    if (alloc != nullptr && alloc->owner == "matmul scratchpad") {
      scratchpads = std::max(scratchpads, alloc->bytes);
    }
  });
  const auto zeros = [&](Index n) { return Halves{format, std::vector<std::uint16_t>(at(n))}; };
  const Halves a = zeros(extent(p, p.a, p.m, p.k)), b = zeros(extent(p, p.b, p.k, p.n));
  const Halves bias = zeros(p.n);
  Halves c = unwritten_halves(format, extent(p, p.c, p.m, p.n));
  bench.device.matmul(p, a.values(), b.values(), with_bias ? bias.values() : ConstValues(),
                      c.values());
  CHECK(bench.ledger.live().total() == 0);
  CHECK(std::all_of(c.bits.begin(), c.bits.end(), [](std::uint16_t bits) { return bits == 0; }));
  return {bench.ledger.category_peak()[Category::workspace] - scratchpads, scratchpads};
}

}  // namespace

TEST_CASE("a 16-bit product of any size and orientation is the float64 result rounded",
          "[sixteen]") {
  for (const Format& format : kFormats) {
    for (const Index m : {1, 5, 33}) {
      for (const Index n : {1, 3, 33, 64}) {
        for (const Index k : {1, 5, 130}) {
          for (const int kind : {0, 1, 2, 3}) {
            check_product(format, plain_product(m, n, k, kind % 2 == 1, kind / 2 == 1),
                          (m + n + k) % 4 == 1);
          }
        }
      }
    }
  }
}

TEST_CASE("rows of a 16-bit product may lie apart, and what is between them stays", "[sixteen]") {
  for (const Format& format : kFormats) {
    for (const int kind : {0, 1, 2, 3}) {
      const Product p = spread(plain_product(17, 9, 11, kind % 2 == 1, kind / 2 == 1));
      check_product(format, p, false);
      check_product(format, p, true);
    }
  }
}

TEST_CASE("the heads of 16-bit attention are a batch of strided slices", "[sixteen]") {
  for (const Format& format : kFormats) {
    for (const Product& product : attention_products()) {
      check_product(format, product, false);
      check_product(format, product, true);
    }
  }
}

TEST_CASE("a batch stride of zero uses one 16-bit matrix for every product", "[sixteen]") {
  for (const Format& format : kFormats) {
    for (const auto& [outer, inner] : {std::pair<Index, Index>{3, 1}, {1, 3}, {2, 3}}) {
      Product p = batch_of(plain_product(4, 6, 5), outer, inner);
      p.a.outer_stride = p.a.inner_stride = 0;
      check_product(format, p, true);
      p = batch_of(plain_product(4, 6, 5, true, true), outer, inner);
      p.b.outer_stride = p.b.inner_stride = 0;
      check_product(format, p, false);
    }
  }
}

TEST_CASE("a 16-bit product too large to be widened at once is the same in parts", "[sixteen]") {
  std::vector<Product> products;
  // More rows than columns, more columns than rows, and sums so long that c has hardly an element.
  for (const bool transposed : {false, true}) {
    products.push_back(spread(plain_product(1501, 701, 2, transposed, false)));
    products.push_back(spread(plain_product(401, 2603, 2, false, transposed)));
    products.push_back(plain_product(3, 2, 210011, transposed, !transposed));
  }
  // Batches of either stride, whose halves may be too large by themselves.
  products.push_back(batch_of(plain_product(301, 601, 2, true), 3, 2));
  products.push_back(batch_of(plain_product(301, 901, 2, false, true), 1, 5));
  products.push_back(batch_of(plain_product(1201, 901, 1), 2, 1));
  products.push_back(batch_of(plain_product(301, 901, 2), 5, 1));
  products.back().a.outer_stride = 0;
  products.push_back(batch_of(plain_product(301, 901, 2), 1, 5));
  products.back().b.inner_stride = 0;
  bool with_bias = true;
  for (const Product& p : products) {
    REQUIRE(elements(p) * 4 > kMostBytes);
    for (const Format& format : kFormats) check_product(format, p, with_bias);
    with_bias = !with_bias;
  }
}

TEST_CASE("the operands of a product may have different types", "[sixteen]") {
  CpuBench bench;
  const Product p = plain_product(9, 7, 33, false, true);
  for (const Format& format : kFormats) {
    const Format& other = format.dtype == Dtype::bf16 ? kFp16 : kBf16;
    const Halves a = random_halves(format, 9 * 33, 1), b = random_halves(other, 7 * 33, 2);
    const Floats bias = random_floats(7, 3);
    const ProductResult want =
        product(p, widened(a), widened(b), widened(bias), Doubles(at(9 * 7)));
    Doubles fp32_error = want.magnitude;
    for (double& x : fp32_error) x *= kRounding * 35;
    Halves c = unwritten_halves(format, 9 * 7);
    bench.device.matmul(p, a.values(), b.values(), bias.data(), c.values());
    check_agreement(c, want.value, fp32_error);
    Floats wide(at(9 * 7), 7.0F);
    bench.device.matmul(p, a.values(), b.values(), bias.data(), wide.data());
    CHECK(worst_error(wide, want.value, fp32_error) <= 1);
  }
}

TEST_CASE("a 16-bit product over nothing is its bias, or zero", "[sixteen]") {
  CpuBench bench;
  Product p = batch_of(plain_product(2, 2, 0), 1, 2);
  p.c.leading = 3;
  p.c.inner_stride = 7;
  for (const Format& format : kFormats) {
    Halves c = to_halves(format, Floats(12, 7.0F));
    const Halves bias = to_halves(format, Floats{1.0F, 2.0F});
    bench.device.matmul(p, Values(nullptr, format.dtype), nullptr, bias.values(), c.values());
    CHECK(to_floats(c) == Floats{1, 2, 7, 1, 2, 7, 7, 1, 2, 7, 1, 2});
    bench.device.matmul(p, nullptr, nullptr, nullptr, c.values());
    CHECK(to_floats(c) == Floats{0, 0, 7, 0, 0, 7, 7, 0, 0, 7, 0, 0});
    // A bias of another type is rounded.
    const Floats wide{0.1F, -0.2F};
    bench.device.matmul(plain_product(1, 2, 0), nullptr, nullptr, wide.data(), c.values());
    CHECK(Halves{format, {c.bits[0], c.bits[1]}} == to_halves(format, wide));
  }
}

TEST_CASE("a 16-bit product without rows or columns writes nothing, any other overwrites NaN",
          "[sixteen]") {
  CpuBench bench;
  for (const Format& format : kFormats) {
    const Halves in = to_halves(format, Floats{1, 2, 3, 4});
    Halves c = unwritten_halves(format, 2);
    const ConstValues a = in.values();
    bench.device.matmul(plain_product(0, 2, 2), a, a, nullptr, c.values());
    bench.device.matmul(plain_product(2, 0, 2), a, a, a, c.values());
    Product none = plain_product(1, 1, 2);
    none.inner = 0;
    bench.device.matmul(none, a, a, nullptr, c.values());
    CHECK(c == unwritten_halves(format, 2));
    bench.device.matmul(plain_product(1, 1, 2), a, a + 2, nullptr, c.values());
    CHECK(c.bits[0] == encoded(format, 11));
    CHECK(c.bits[1] == 0x7FFF);
  }
}

TEST_CASE("a product holds 4 MiB of widened operands at most, or what one row and one column need",
          "[sixteen]") {
  for (const Format& format : kFormats) {
    // Tall, wide, thin, deep, and a batch: what is widened would be up to 21 MiB.
    for (const Product& p :
         {plain_product(2003, 1999, 8), plain_product(5, 500009, 1), plain_product(500009, 5, 1),
          plain_product(33, 35, 70001), batch_of(plain_product(301, 299, 40), 7, 5)}) {
      INFO(name_of(format.dtype) << " m " << p.m << " n " << p.n << " k " << p.k);
      REQUIRE(elements(p) * 4 > kMostBytes);
      CHECK(workspace_of(format, p, false).widened <= kMostBytes);
      CHECK(workspace_of(format, p, true).widened <= kMostBytes + 4 * p.n);
    }
    constexpr Index kDeep = 1000003;
    CHECK(workspace_of(format, plain_product(2, 2, kDeep), false).widened <= 4 * (2 * kDeep + 1));
  }
}

TEST_CASE("a 16-bit product is counted where the device rounds it", "[sixteen]") {
  CpuBench bench;
  // 0 and tiny numbers: fp16 keeps half of the products.
  const Halves a = to_halves(kFp16, Floats{1, 0x1p-20F, 0}),
               b = to_halves(kFp16, Floats{1, 0x1p-20F});
  Halves c = unwritten_halves(kFp16, 6);
  bench.device.matmul(plain_product(3, 2, 1), a.values(), b.values(), nullptr, c.values());
  CHECK(to_floats(c) == Floats{1, 0x1p-20F, 0x1p-20F, 0, 0, 0});
  CHECK(bench.device.rounding_loss().rounded == 4);
  CHECK(bench.device.rounding_loss().flushed == 1);
}
