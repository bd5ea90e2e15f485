#include <functional>
#include <list>

#include "tests/device/support.hpp"
#include "tests/support/catch.hpp"

// A weight is a slice of a flat buffer, at an offset that depends on the stage and the number of
// ranks: if the bits of a result depended on it, stages would differ.

using namespace zerolab;
using namespace zerolab::test;

namespace {

/// Places tensors so many floats behind a 64-byte boundary: `first`, and `step` more for each.
class Arena {
 public:
  Arena(Index first, Index step) : next_(first), step_(step) {}

  float* put(const Floats& values) {
    constexpr Index kBoundary = 16;
    Floats& storage = storage_.emplace_back(values.size() + 2 * at(kBoundary));
    const auto address = reinterpret_cast<std::uintptr_t>(storage.data()) / sizeof(float);
    const Index to_boundary = (kBoundary - static_cast<Index>(address % kBoundary)) % kBoundary;
    float* placed = storage.data() + to_boundary + next_ % kBoundary;
    next_ += step_;
    std::copy(values.begin(), values.end(), placed);
    return placed;
  }
  float* random(Index n) { return put(random_floats(n, ++seed_)); }
  float* output(Index n) {
    float* placed = put(Floats(at(n), 7.0F));
    outputs_.push_back({placed, n});
    return placed;
  }
  float* in_place(Index n) {
    float* placed = random(n);
    outputs_.push_back({placed, n});
    return placed;
  }

  Floats results() const {
    Floats all;
    for (const auto& [data, n] : outputs_) all.insert(all.end(), data, data + n);
    return all;
  }

 private:
  Index next_, step_;
  std::uint64_t seed_ = 0;
  std::list<Floats> storage_;
  std::vector<std::pair<const float*, Index>> outputs_;
};

using Operation = std::function<void(Device&, Arena&)>;

bool independent_of_placement(const Operation& operation) {
  const auto results = [&](Index first, Index step) {
    CpuBench bench;
    Arena arena(first, step);
    operation(bench.device, arena);
    return arena.results();
  };
  const Floats aligned = results(0, 0);
  for (const Index offset : {1, 3, 5, 8}) {
    if (!same_bits(results(offset, 0), aligned)) return false;
    if (!same_bits(results(0, offset), aligned)) return false;
    if (!same_bits(results(offset, 7), aligned)) return false;
  }
  return true;
}

}  // namespace

TEST_CASE("the bits of a product do not depend on where its operands lie") {
  for (const Index m : {1, 3, 33, 64, 257}) {
    for (const Index n : {1, 5, 48, 65, 192}) {
      for (const Index k : {1, 3, 33, 64, 400}) {
        for (const int kind : {0, 1, 2, 3}) {
          INFO("m " << m << " n " << n << " k " << k << " kind " << kind);
          CHECK(independent_of_placement([&](Device& device, Arena& arena) {
            const Product p = plain_product(m, n, k, kind % 2 == 1, kind / 2 == 1);
            const float* a = arena.random(m * k);
            const float* b = arena.random(k * n);
            const float* bias = (m + k) % 2 == 0 ? arena.random(n) : nullptr;
            device.matmul(p, a, b, bias, arena.output(m * n));
          }));
        }
      }
    }
  }
}

TEST_CASE("the bits of attention's products do not depend on where the heads lie") {
  for (const Index head : {5, 16, 32}) {
    for (const Index length : {7, 33, 64}) {
      const Index heads = 3, width = heads * head, batch = 2;
      Product p;
      p.outer = batch;
      p.inner = heads;
      p.m = p.n = length;
      p.k = head;
      p.a = {3 * width, false, length * 3 * width, head};
      p.b = p.a;
      p.b.transposed = true;
      p.c = {length, false, heads * length * length, length * length};
      INFO("head " << head << " length " << length);
      CHECK(independent_of_placement([&](Device& device, Arena& arena) {
        const float* qkv = arena.random(batch * length * 3 * width);
        device.matmul(p, qkv, qkv + width, nullptr, arena.output(batch * heads * length * length));
      }));
    }
  }
}

TEST_CASE("the bits of norms, softmax and losses do not depend on where their tensors lie") {
  for (const Index rows : {1, 3, 33}) {
    for (const Index width : {1, 3, 5, 33, 64, 192}) {
      INFO("rows " << rows << " width " << width);
      const Index n = rows * width;
      CHECK(independent_of_placement([&](Device& device, Arena& arena) {
        const float* x = arena.random(n);
        const float* gamma = arena.random(width);
        const float* beta = arena.random(width);
        float* mean = arena.output(rows);
        float* variance = arena.output(rows);
        device.layer_norm(rows, width, 1e-5F, x, gamma, beta, arena.output(n), mean, variance);
        const float* dy = arena.random(n);
        float* dx = arena.output(n);
        float* dgamma = arena.output(width);
        device.layer_norm_backward(rows, width, 1e-5F, x, gamma, mean, variance, dy, dx, dgamma,
                                   arena.output(width));
      }));
      CHECK(independent_of_placement([&](Device& device, Arena& arena) {
        float* scores = arena.in_place(rows * width * width);
        device.causal_softmax(rows, width, 0.3F, scores);
        device.causal_softmax_backward(rows, width, 0.3F, scores,
                                       arena.in_place(rows * width * width));
      }));
      CHECK(independent_of_placement([&](Device& device, Arena& arena) {
        const auto targets = random_tokens(rows, width, 9);
        float* logits = arena.in_place(n);
        const double loss = device.cross_entropy(rows, width, targets.data(), logits);
        arena.output(1)[0] = static_cast<float>(loss);
        float* gradient = arena.in_place(n);
        device.cross_entropy(rows, width, targets.data(), gradient);
        device.cross_entropy_backward(rows, width, 0.1F, targets.data(), gradient);
      }));
    }
  }
}

TEST_CASE("the bits of element-wise operations do not depend on where their tensors lie") {
  for (const Index n : {1, 3, 5, 33, 1000, 5000}) {
    INFO("n " << n);
    CHECK(independent_of_placement([&](Device& device, Arena& arena) {
      const float* x = arena.random(n);
      device.gelu(n, x, arena.output(n));
      device.gelu_backward(n, x, arena.random(n), arena.output(n));
      device.sum_rows(3, n, arena.random(3 * n), arena.output(n));
      device.add(arena.in_place(n), x, n);
      const ConstValues parts[] = {x, arena.random(n), arena.random(n)};
      device.ordered_sum(parts, n, 0.3F, arena.output(n));
      device.random_normal(arena.output(n), 5, n, 1, 2, 0.02F);
    }));
    CHECK(independent_of_placement([&](Device& device, Arena& arena) {
      const float* gradient = arena.random(n);
      float* weight = arena.in_place(n);
      float* moment1 = arena.output(n);
      device.adam({0.1F, 0.9F, 0.999F, 1e-8F, 0.1F}, n, gradient, weight, moment1, arena.output(n));
      device.sgd({0.1F, 0.9F, 0.1F}, n, gradient, weight, arena.in_place(n));
      arena.output(1)[0] = static_cast<float>(device.square_sum(weight, n).root());
      arena.output(1)[0] = static_cast<float>(device.hash(1, 2, weight, n) >> 40);
    }));
  }
}
