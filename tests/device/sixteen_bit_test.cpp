#include "tests/device/sixteen_bit.hpp"

#include <bit>
#include <thread>

// What a device does element by element with 16-bit tensors: fp32 arithmetic on the widened values,
// and one rounding.

using namespace zerolab;
using namespace zerolab::test;

namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Around the block of floats that values go through.
constexpr Index kSizes[] = {0, 1, 3, 5, 33, 1023, 1024, 1025, 2051};

template <typename Compute>
Floats element_wise(const Floats& values, Compute compute) {
  Floats results;
  for (const float value : values) results.push_back(compute(value));
  return results;
}

Halves every_pattern(const Format& format, bool finite_only) {
  Halves halves{format, {}};
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    if (!finite_only || (bits & 0x7FFFU) < format.infinity()) {
      halves.bits.push_back(static_cast<std::uint16_t>(bits));
    }
  }
  return halves;
}

Index count(const Halves& halves) { return static_cast<Index>(halves.bits.size()); }

Index not_zero(const Floats& values) {
  return static_cast<Index>(values.size()) - std::count(values.begin(), values.end(), 0.0F);
}

}  // namespace

TEST_CASE("copying between types converts every element and rounds once", "[sixteen]") {
  CpuBench bench;
  for (const Format& format : kFormats) {
    for (const Index n : kSizes) {
      INFO(name_of(format.dtype) << " n " << n);
      Floats in = random_floats(n, 1, 1000.0F);
      const Floats special{65520.0F, -0.0F, 1e-9F, -3e38F, kInfinity, 0x1p-25F, 6e-8F, -1e-42F};
      std::copy_n(special.begin(), std::min(in.size(), special.size()), in.begin());
      Halves halves = unwritten_halves(format, n);
      bench.device.copy(halves.values(), in.data(), n);
      CHECK(halves == to_halves(format, in));

      Floats back(at(n), 7.0F);
      bench.device.copy(back.data(), std::as_const(halves).values(), n);
      CHECK(same_bits(back, to_floats(halves)));
      for (const Format& other : kFormats) {
        Halves out = unwritten_halves(other, n);
        bench.device.copy(out.values(), std::as_const(halves).values(), n);
        CHECK(out == to_halves(other, widened(halves)));
      }
    }
    // Bits where nothing is converted, those of NaN too.
    const Halves all = every_pattern(format, false);
    Halves out = unwritten_halves(format, count(all));
    bench.device.copy(out.values(), all.values(), count(all));
    CHECK(out == all);
  }
}

TEST_CASE("filling rounds the value", "[sixteen]") {
  CpuBench bench;
  for (const Format& format : kFormats) {
    for (const float value : {0.1F, -0.0F, 65520.0F, 1e-9F, kInfinity}) {
      Halves out = unwritten_halves(format, 7);
      bench.device.fill(out.values(), 6, value);
      Halves want = to_halves(format, Floats(6, value));
      want.bits.push_back(0x7FFF);
      CHECK(out == want);
    }
  }
}

TEST_CASE("adding and scaling 16-bit tensors rounds the fp32 result once", "[sixteen]") {
  CpuBench bench;
  for (const Format& format : kFormats) {
    for (const Index n : kSizes) {
      INFO(name_of(format.dtype) << " n " << n);
      const Halves a = random_halves(format, n, 1), b = random_halves(format, n, 2, 0.1F);
      const Floats wide = random_floats(n, 3), wide_a = to_floats(a), wide_b = to_floats(b);
      Floats sum(at(n)), sum_with_wide(at(n));
      for (std::size_t i = 0; i < at(n); ++i) {
        sum[i] = wide_a[i] + wide_b[i];
        sum_with_wide[i] = wide_a[i] + wide[i];
      }
      Halves out = a;
      bench.device.add(out.values(), b.values(), n);
      CHECK(out == to_halves(format, sum));
      out = a;
      bench.device.add(out.values(), wide.data(), n);
      CHECK(out == to_halves(format, sum_with_wide));
      Floats wide_out = wide;
      bench.device.add(wide_out.data(), a.values(), n);
      CHECK(same_bits(wide_out, sum_with_wide));
      out = a;
      bench.device.scale(out.values(), n, 0.3F);
      CHECK(out == to_halves(format, element_wise(wide_a, [](float x) { return x * 0.3F; })));
    }
  }
}

TEST_CASE("an ordered sum of 16-bit parts is added in fp32 and rounded once", "[sixteen]") {
  CpuBench bench;
  for (const Format& format : kFormats) {
    const Format& other = format.dtype == Dtype::bf16 ? kFp16 : kBf16;
    for (const Index n : kSizes) {
      for (const std::size_t parts : {1U, 2U, 3U, 5U}) {
        INFO(name_of(format.dtype) << " n " << n << " parts " << parts);
        std::vector<Halves> halves;
        for (std::size_t p = 0; p < parts; ++p) halves.push_back(random_halves(format, n, p + 1));
        // One part may be of another type.
        const Halves odd = random_halves(other, n, 9);
        const Floats wide = random_floats(n, 10);
        std::vector<ConstValues> alike, mixed;
        Floats sum = to_floats(halves[0]), mixed_sum = sum;
        for (std::size_t p = 0; p < parts; ++p) {
          alike.push_back(std::as_const(halves[p]).values());
          mixed.push_back(alike.back());
          const Floats terms = to_floats(halves[p]);
          if (p == 0) continue;
          for (std::size_t i = 0; i < at(n); ++i) sum[i] += terms[i];
          for (std::size_t i = 0; i < at(n); ++i) mixed_sum[i] += terms[i];
        }
        const Floats odd_terms = to_floats(odd);
        for (std::size_t i = 0; i < at(n); ++i) {
          sum[i] *= 0.3F;
          mixed_sum[i] = ((mixed_sum[i] + odd_terms[i]) + wide[i]) * 0.3F;
        }
        mixed.push_back(odd.values());
        mixed.emplace_back(wide.data());

        Halves out = unwritten_halves(format, n);
        bench.device.ordered_sum(mixed, n, 0.3F, out.values());
        CHECK(out == to_halves(format, mixed_sum));
        Floats wide_out(at(n), 7.0F);
        bench.device.ordered_sum(alike, n, 0.3F, wide_out.data());
        CHECK(same_bits(wide_out, sum));
        bench.device.ordered_sum(alike, n, 0.3F, halves.back().values());  // over one of its parts
        CHECK(halves.back() == to_halves(format, sum));
      }
    }
    Halves none = unwritten_halves(format, 3);
    bench.device.ordered_sum({}, 3, 0.3F, none.values());
    CHECK(none == to_halves(format, Floats(3, 0.0F)));
  }
}

TEST_CASE("a sum in fp32 keeps what 16 bits would lose from addition to addition", "[sixteen]") {
  CpuBench bench;
  for (const Format& format : kFormats) {
    // A number, and eight times an eighth of its last place.
    const float one = 1.0F, little = std::ldexp(0.125F, -format.significand_bits);
    const Halves first = to_halves(format, Floats{one}), more = to_halves(format, Floats{little});
    std::vector<ConstValues> parts{first.values()};
    for (int i = 0; i < 8; ++i) parts.push_back(more.values());
    Halves out = unwritten_halves(format, 1);
    bench.device.ordered_sum(parts, 1, 1.0F, out.values());
    CHECK(to_floats(out) == Floats{one + 8 * little});
  }
}

TEST_CASE("a random 16-bit tensor is the fp32 one, rounded", "[sixteen]") {
  CpuBench bench;
  for (const Format& format : kFormats) {
    Floats wide(2051);
    bench.device.random_normal(wide.data(), 5, 2051, 11, 4, 0.02F);
    Halves whole = unwritten_halves(format, 2051), piece = unwritten_halves(format, 20);
    bench.device.random_normal(whole.values(), 5, 2051, 11, 4, 0.02F);
    CHECK(whole == to_halves(format, wide));
    bench.device.random_normal(piece.values(), 1022, 20, 11, 4, 0.02F);
    CHECK(std::equal(piece.bits.begin(), piece.bits.end(), whole.bits.begin() + 1017));
  }
}

TEST_CASE("an update by a 16-bit gradient is that by the same gradient in fp32", "[sixteen]") {
  CpuBench bench;
  const AdamUpdate adam{0.01F, 0.9F, 0.999F, 1e-8F, 0.1F, true, 0.1F, 0.001F, 0.5F};
  for (const Format& format : kFormats) {
    for (const Index n : kSizes) {
      INFO(name_of(format.dtype) << " n " << n);
      const Halves gradient = random_halves(format, n, 1, 1e-4F);
      const Floats wide = to_floats(gradient);
      const Floats master = random_floats(n, 2),
                   moment = element_wise(master, [](float x) { return x * x; });
      Floats got[] = {master, moment, moment}, want[] = {master, moment, moment};
      bench.device.adam(adam, n, gradient.values(), got[0].data(), got[1].data(), got[2].data());
      bench.device.adam(adam, n, wide.data(), want[0].data(), want[1].data(), want[2].data());
      for (const int i : {0, 1, 2}) CHECK(same_bits(got[i], want[i]));

      for (const bool first : {true, false}) {
        const SgdUpdate heavy{0.1F, 0.9F, 0.01F, first, 0.5F}, plain{0.1F, 0.0F, 0.01F};
        bench.device.sgd(heavy, n, gradient.values(), got[0].data(), got[1].data());
        bench.device.sgd(heavy, n, wide.data(), want[0].data(), want[1].data());
        bench.device.sgd(plain, n, gradient.values(), got[2].data(), nullptr);
        bench.device.sgd(plain, n, wide.data(), want[2].data(), nullptr);
        for (const int i : {0, 1, 2}) CHECK(same_bits(got[i], want[i]));
      }
    }
  }
}

TEST_CASE("a 16-bit tensor has the norm, the hash and the finiteness of its values", "[sixteen]") {
  CpuBench bench;
  for (const Format& format : kFormats) {
    INFO(name_of(format.dtype));
    Halves all = every_pattern(format, false), finite = every_pattern(format, true);
    const Floats wide_all = to_floats(all), wide_finite = to_floats(finite);
    const Index n = count(finite);
    CHECK(bench.device.square_sum(finite.values(), n).bucket ==
          bench.device.square_sum(wide_finite.data(), n).bucket);
    const SquareSum sum = bench.device.square_sum(all.values(), count(all));
    CHECK(sum.bucket == bench.device.square_sum(wide_all.data(), count(all)).bucket);
    CHECK(sum.bucket[255] ==
          std::array<std::uint64_t, 2>{2, static_cast<std::uint64_t>(count(all) - n - 2)});

    CHECK(bench.device.hash(9, 1000, finite.values(), n) ==
          bench.device.hash(9, 1000, wide_finite.data(), n));
    CHECK(bench.device.hash(9, 1000, finite.values(), 33) +
              bench.device.hash(9, 1033, std::as_const(finite).values() + 33, n - 33) ==
          bench.device.hash(9, 1000, finite.values(), n));

    CHECK(bench.device.finite(finite.values(), n));
    CHECK(bench.device.finite(all.values(), 0));
    for (const std::uint32_t bad : {format.infinity(), format.infinity() + 1U, 0x7FFFU}) {
      for (const Index place : {Index{0}, n / 2, n - 1}) {
        for (const std::uint32_t sign : {0U, 0x8000U}) {
          const std::uint16_t good = finite.bits[at(place)];
          finite.bits[at(place)] = static_cast<std::uint16_t>(bad | sign);
          CHECK_FALSE(bench.device.finite(finite.values(), n));
          finite.bits[at(place)] = good;
        }
      }
    }
  }
}

TEST_CASE("the norm of more 16-bit values than one set of buckets holds", "[sixteen]") {
  CpuBench bench;
  constexpr Index kCount = (Index{1} << 18) + 71;
  for (const Format& format : kFormats) {
    Halves many{format, {}};
    const std::vector<std::uint16_t> once = every_pattern(format, true).bits;
    while (count(many) < kCount) {
      many.bits.insert(many.bits.end(), once.begin(), once.end());
    }
    many.bits.resize(at(kCount));
    const Floats wide = to_floats(many);
    SquareSum want;
    constexpr Index kPiece = 1000;
    for (Index i = 0; i < kCount; i += kPiece) {
      want += bench.device.square_sum(wide.data() + i, std::min(kPiece, kCount - i));
    }
    CHECK(bench.device.square_sum(many.values(), kCount).bucket == want.bucket);
  }
}

TEST_CASE("a master follows a weight only where it is not what the weight was rounded from",
          "[sixteen]") {
  CpuBench bench;
  for (const Format& format : kFormats) {
    INFO(name_of(format.dtype));
    const Floats master = random_floats(1000, 1, 0.02F);
    Halves weights = to_halves(format, master);
    Floats followed = master;
    bench.device.follow(weights.values(), 1000, followed.data());
    CHECK(same_bits(followed, master));

    Floats want = master;
    for (std::size_t i = 0; i < 1000; i += 7) {
      weights.bits[i] ^= 1U;  // to a neighbour
      want[i] = to_floats(weights)[i];
    }
    bench.device.follow(weights.values(), 1000, followed.data());
    CHECK(same_bits(followed, want));
    bench.device.follow(weights.values(), 1000, followed.data());
    CHECK(same_bits(followed, want));

    // Too small for either type, so they round to a zero with their sign.
    Floats small{1e-42F, 1e-42F, -1e-42F, -1e-42F, 0.0F, -0.0F, 3e38F, 1.0F};
    const Halves written =
        to_halves(format, Floats{0.0F, -0.0F, 0.0F, -0.0F, -0.0F, -0.0F, kInfinity, -kInfinity});
    Floats after{1e-42F, -0.0F, 0.0F, -1e-42F, -0.0F, -0.0F, kInfinity, -kInfinity};
    if (format.dtype == Dtype::fp16) after[6] = 3e38F;  // infinity is what it was rounded to
    bench.device.follow(written.values(), 8, small.data());
    CHECK(same_bits(small, after));
  }
  const Floats weights{1.0F, -0.0F, 2.0F};
  Floats masters{1.5F, 0.0F, 2.0F};
  bench.device.follow(weights.data(), 3, masters.data());
  CHECK(same_bits(masters, weights));
  bench.device.follow(Values(nullptr, Dtype::bf16), 0, nullptr);
}

TEST_CASE("what becomes zero in 16 bits is counted against what was not zero", "[sixteen]") {
  CpuBench bench;
  const float nan = std::numeric_limits<float>::quiet_NaN();
  // Six and a NaN are not zero, of which fp16 keeps none below half of its least, bf16 all but one.
  const Floats in{1e-9F, -1e-9F, 0.0F, -0.0F, 1.0F, 0x1p-25F, 6e-8F, -1e-42F, nan};
  const auto stored = [&](Values out) {
    const RoundingLoss before = bench.device.rounding_loss();
    bench.device.copy(out, in.data(), 9);
    return bench.device.rounding_loss() - before;
  };
  Halves fp16 = unwritten_halves(kFp16, 9), bf16 = unwritten_halves(kBf16, 9);
  Floats fp32(9);
  CHECK(bench.device.rounding_loss().rounded == 0);
  CHECK(bench.device.rounding_loss().share() == 0);
  const RoundingLoss of_fp16 = stored(fp16.values());
  CHECK(of_fp16.rounded == 7);
  CHECK(of_fp16.flushed == 4);
  CHECK(of_fp16.share() == 4.0 / 7.0);
  CHECK(fp16.bits[0] == 0);
  const RoundingLoss of_bf16 = stored(bf16.values());
  CHECK(of_bf16.rounded == 7);
  CHECK(of_bf16.flushed == 1);
  CHECK(stored(fp32.data()).rounded == 0);
  CHECK(bench.device.rounding_loss().rounded == 14);
  CHECK(bench.device.rounding_loss().flushed == 5);
  RoundingLoss sum = of_fp16;
  sum += of_bf16;
  CHECK(sum.rounded == 14);
  CHECK(sum.flushed == 5);
}

TEST_CASE("every result that an element-wise operation rounds is counted once", "[sixteen]") {
  CpuBench bench;
  constexpr Index kCount = 2051;
  for (const Format& format : kFormats) {
    INFO(name_of(format.dtype));
    const Halves in = random_halves(format, kCount, 1);
    const auto stored = [&](const auto& operation) {
      const RoundingLoss before = bench.device.rounding_loss();
      Halves out = in;
      operation(out.values());
      const RoundingLoss loss = bench.device.rounding_loss() - before;
      CHECK(loss.flushed == 0);
      return loss.rounded == not_zero(to_floats(out));
    };
    const ConstValues parts[] = {in.values(), in.values(), in.values()};
    Device& device = bench.device;
    CHECK(stored([&](Values out) { device.scale(out, kCount, 2.0F); }));
    CHECK(stored([&](Values out) { device.add(out, in.values(), kCount); }));
    CHECK(stored([&](Values out) { device.gelu(kCount, in.values(), out); }));
    CHECK(stored([&](Values out) { device.sum_rows(1, kCount, in.values(), out); }));
    // the worker's sums are counted apart: it runs beside the compute thread
    Halves sums = in;
    const Index sums_before = device.rounding_loss_of_sums().rounded;
    const Index before = device.rounding_loss().rounded;
    device.ordered_sum(parts, kCount, 1.0F, sums.values());
    CHECK(device.rounding_loss_of_sums().rounded - sums_before == not_zero(to_floats(sums)));
    CHECK(device.rounding_loss().rounded == before);
    device.scale(unwritten_halves(format, 0).values(), 0, 2.0F);
    Floats wide = to_floats(in);
    device.add(wide.data(), in.values(), kCount);
    device.ordered_sum(parts, kCount, 1.0F, wide.data());
    CHECK(device.rounding_loss().rounded == before);
  }
}

TEST_CASE("the communication worker may round while the compute thread does", "[sixteen]") {
  CpuBench bench;
  const Halves in = to_halves(kFp16, Floats(3000, 0x1p-24F));  // halved it is a tie, and flushed
  Halves sum = unwritten_halves(kFp16, 3000), scaled = in;
  const ConstValues parts[] = {in.values()};
  std::thread worker([&] {
    for (int i = 0; i < 50; ++i) bench.device.ordered_sum(parts, 3000, 0.5F, sum.values());
  });
  for (int i = 0; i < 50; ++i) bench.device.scale(scaled.values(), 3000, 2.0F);
  worker.join();
  CHECK(bench.device.rounding_loss().rounded == 50 * 3000);
  CHECK(bench.device.rounding_loss().flushed == 0);
  CHECK(bench.device.rounding_loss_of_sums().rounded == 50 * 3000);
  CHECK(bench.device.rounding_loss_of_sums().flushed == 50 * 3000);
}
