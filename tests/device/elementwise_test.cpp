#include <bit>
#include <thread>

#include "stages/base/hash.hpp"
#include "tests/device/support.hpp"
#include "tests/support/catch.hpp"

using namespace zerolab;
using namespace zerolab::test;

TEST_CASE("fill, copy and add do what they say, on nothing too") {
  CpuBench bench;
  for (const Index n : {0, 1, 3, 5, 33}) {
    const Floats in = random_floats(n, 1);
    Floats out(in.size());
    bench.device.fill(out.data(), n, 2.5F);
    CHECK(out == Floats(in.size(), 2.5F));
    bench.device.copy(out.data(), in.data(), n);
    CHECK(out == in);
    bench.device.add(out.data(), in.data(), n);
    for (Index i = 0; i < n; ++i) CHECK(out[at(i)] == 2 * in[at(i)]);
  }
}

TEST_CASE("an ordered sum adds its parts one after the other, then multiplies once") {
  CpuBench bench;
  for (const Index n : {0, 1, 5, 1023, 1024, 2051}) {
    for (const std::size_t count : {1U, 2U, 3U, 5U}) {
      std::vector<Floats> parts;
      std::vector<ConstValues> pointers;
      for (std::size_t p = 0; p < count; ++p) parts.push_back(random_floats(n, p + 1));
      for (const Floats& part : parts) pointers.emplace_back(part.data());
      Floats want(at(n)), out(at(n), 7.0F);
      for (std::size_t i = 0; i < want.size(); ++i) {
        float sum = parts[0][i];
        for (std::size_t p = 1; p < count; ++p) sum += parts[p][i];
        want[i] = sum * 0.3F;
      }
      bench.device.ordered_sum(pointers, n, 0.3F, out.data());
      CHECK(same_bits(out, want));
      bench.device.ordered_sum(pointers, n, 0.3F, parts.back().data());
      CHECK(same_bits(parts.back(), want));
    }
  }
  Floats none(3, 7.0F);
  bench.device.ordered_sum({}, 3, 0.3F, none.data());
  CHECK(none == Floats(3, 0.0F));
}

TEST_CASE("an ordered sum may run while the compute thread computes") {
  CpuBench bench;
  const Floats in = random_floats(5000, 1);
  const ConstValues parts[] = {in.data(), in.data()};
  Floats sum(in.size());
  std::thread worker([&] {
    for (int i = 0; i < 100; ++i) bench.device.ordered_sum(parts, 5000, 0.5F, sum.data());
  });
  Floats y(in.size());
  for (int i = 0; i < 100; ++i) bench.device.gelu(5000, in.data(), y.data());
  worker.join();
  CHECK(same_bits(sum, in));
}

TEST_CASE("any piece of a random tensor is that piece of the whole") {
  CpuBench bench;
  Floats whole(50), piece(20);
  bench.device.random_normal(whole.data(), 0, 50, 11, 4, 0.02F);
  bench.device.random_normal(piece.data(), 17, 20, 11, 4, 0.02F);
  CHECK(same_bits(piece, Floats(whole.begin() + 17, whole.begin() + 37)));
  CHECK(whole[3] == almost_normal(Philox(11)(4, 3), 0.02F));
  bench.device.random_normal(piece.data(), 17, 20, 11, 5, 0.02F);
  CHECK_FALSE(same_bits(piece, Floats(whole.begin() + 17, whole.begin() + 37)));
  bench.device.random_normal(nullptr, 0, 0, 11, 4, 0.02F);
}

TEST_CASE("the hash of a tensor is the sum of the hashes of its pieces") {
  CpuBench bench;
  const Floats in = random_floats(100, 1);
  std::uint64_t want = 0;
  for (std::uint64_t i = 0; i < 100; ++i) {
    want += hash_element(9, 1000 + i, std::bit_cast<std::uint32_t>(in[i]));
  }
  CHECK(bench.device.hash(9, 1000, in.data(), 100) == want);
  CHECK(bench.device.hash(9, 1000, in.data(), 33) +
            bench.device.hash(9, 1033, in.data() + 33, 67) ==
        want);
  CHECK(bench.device.hash(9, 1000, in.data(), 0) == 0);
  CHECK(bench.device.hash(9, 1001, in.data(), 100) != want);
}
