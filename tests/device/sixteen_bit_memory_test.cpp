#include "tests/device/sixteen_bit.hpp"

#include <functional>
#include <list>

// What 16-bit operations hold beside their tensors, and that it does not matter where those lie.

using namespace zerolab;
using namespace zerolab::test;

namespace {

/// Places tensors so many elements behind a 64-byte boundary: `first`, and `step` more for each.
class Arena {
 public:
  Arena(const Format& format, Index first, Index step)
      : format_(format), next_(first), step_(step) {}

  Values random(Index n) {
    constexpr Index kBoundary = 32;
    const Halves values = random_halves(format_, n, ++seed_);
    auto& storage = storage_.emplace_back(at(n + 2 * kBoundary));
    const auto address = reinterpret_cast<std::uintptr_t>(storage.data()) / 2;
    const Index to_boundary = (kBoundary - static_cast<Index>(address % kBoundary)) % kBoundary;
    std::uint16_t* placed = storage.data() + to_boundary + next_ % kBoundary;
    next_ += step_;
    std::copy(values.bits.begin(), values.bits.end(), placed);
    return {placed, format_.dtype};
  }
  Values output(Index n) {
    const Values placed = random(n);
    outputs_.push_back({static_cast<const std::uint16_t*>(placed.data()), n});
    return placed;
  }
  float* floats(Index n) { return floats_.emplace_back(at(n), 1.0F).data(); }

  std::vector<std::uint16_t> results() const {
    std::vector<std::uint16_t> all;
    for (const auto& [data, n] : outputs_) all.insert(all.end(), data, data + n);
    return all;
  }

 private:
  Format format_;
  Index next_, step_;
  std::uint64_t seed_ = 0;
  std::list<std::vector<std::uint16_t>> storage_;
  std::list<Floats> floats_;
  std::vector<std::pair<const std::uint16_t*, Index>> outputs_;
};

/// Something that a device does with so many rows of 16-bit elements.
struct Operation {
  const char* name;
  std::function<void(Device&, Arena&, Index rows)> run;
};

// Blocks of 2^14 elements are 496 of these rows.
constexpr Index kWidth = 33;

const Operation kOperations[] = {
    {"product",
     [](Device& device, Arena& arena, Index rows) {
       device.matmul(plain_product(rows, kWidth, 3), arena.random(rows * 3),
                     arena.random(3 * kWidth), arena.random(kWidth), arena.output(rows * kWidth));
     }},
    {"weight gradient",
     [](Device& device, Arena& arena, Index rows) {
       device.matmul(plain_product(3, kWidth, rows, true), arena.random(rows * 3),
                     arena.random(rows * kWidth), nullptr, arena.output(3 * kWidth));
     }},
    {"sum of rows",
     [](Device& device, Arena& arena, Index rows) {
       device.sum_rows(rows, kWidth, arena.random(rows * kWidth), arena.output(kWidth));
     }},
    {"layer norm",
     [](Device& device, Arena& arena, Index rows) {
       device.layer_norm(rows, kWidth, 1e-5F, arena.random(rows * kWidth), arena.random(kWidth),
                         arena.random(kWidth), arena.output(rows * kWidth), arena.floats(rows),
                         arena.floats(rows));
     }},
    {"layer norm backward",
     [](Device& device, Arena& arena, Index rows) {
       device.layer_norm_backward(rows, kWidth, 1e-5F, arena.random(rows * kWidth),
                                  arena.random(kWidth), arena.floats(rows), arena.floats(rows),
                                  arena.random(rows * kWidth), arena.output(rows * kWidth),
                                  arena.output(kWidth), arena.output(kWidth));
     }},
    {"causal softmax",
     [](Device& device, Arena& arena, Index rows) {
       device.causal_softmax(rows / kWidth, kWidth, 0.3F, arena.output(rows * kWidth));
     }},
    {"causal softmax backward",
     [](Device& device, Arena& arena, Index rows) {
       device.causal_softmax_backward(rows / kWidth, kWidth, 0.3F, arena.random(rows * kWidth),
                                      arena.output(rows * kWidth));
     }},
    {"GELU",
     [](Device& device, Arena& arena, Index rows) {
       device.gelu(rows * kWidth, arena.random(rows * kWidth), arena.output(rows * kWidth));
     }},
    {"GELU backward",
     [](Device& device, Arena& arena, Index rows) {
       device.gelu_backward(rows * kWidth, arena.random(rows * kWidth), arena.random(rows * kWidth),
                            arena.output(rows * kWidth));
     }},
    {"cross entropy",
     [](Device& device, Arena& arena, Index rows) {
       const auto targets = random_tokens(rows, kWidth, 9);
       const Values logits = arena.output(rows * kWidth);
       device.cross_entropy(rows, kWidth, targets.data(), logits);
       device.cross_entropy_backward(rows, kWidth, 0.1F, targets.data(), logits);
     }},
    {"embedding",
     [](Device& device, Arena& arena, Index rows) {
       const auto tokens = random_tokens(rows, 7, 9);
       device.embedding(rows, kWidth, tokens.data(), arena.random(7 * kWidth),
                        arena.output(rows * kWidth));
     }},
    {"embedding backward",
     [](Device& device, Arena& arena, Index rows) {
       const auto tokens = random_tokens(rows, 7, 9);
       device.embedding_backward(rows, kWidth, 7, tokens.data(), arena.random(rows * kWidth),
                                 arena.output(7 * kWidth));
     }},
    {"element-wise",
     [](Device& device, Arena& arena, Index rows) {
       const Index n = rows * kWidth;
       const ConstValues parts[] = {arena.random(n), arena.random(n)};
       device.ordered_sum(parts, n, 0.3F, arena.output(n));
       device.add(arena.output(n), parts[0], n);
       device.scale(arena.output(n), n, 0.3F);
       device.copy(arena.output(n), arena.floats(n), n);
       device.adam({0.1F, 0.9F, 0.999F, 1e-8F, 0.1F}, n, parts[0], arena.floats(n), arena.floats(n),
                   arena.floats(n));
     }},
};

}  // namespace

TEST_CASE("a 16-bit operation gives back what it holds, and holds no more for more rows",
          "[sixteen]") {
  for (const Format& format : kFormats) {
    for (const Operation& operation : kOperations) {
      INFO(name_of(format.dtype) << " " << operation.name);
      const auto most = [&](Index rows) {
        CpuBench bench;
        Arena arena(format, 0, 0);
        operation.run(bench.device, arena, rows);
        CHECK(bench.ledger.live().total() == 0);
        return bench.ledger.category_peak()[Category::workspace];
      };
      const Index few = most(31 * kWidth), many = most(47 * kWidth);
      const std::string name = operation.name;
      if (name == "embedding backward") {
        CHECK(many - few == 16 * kWidth * 4);  // the places of the tokens, as integers
      } else if (name.find("gradient") == std::string::npos && name != "product") {
        CHECK(many == few);  // products have a bound of their own
      }
    }
  }
}

TEST_CASE("a 16-bit operation that runs out of memory anywhere leaves nothing behind",
          "[sixteen]") {
  for (const Format& format : kFormats) {
    for (const Operation& operation : kOperations) {
      INFO(name_of(format.dtype) << " " << operation.name);
      constexpr Index kRows = 2 * kWidth;
      CpuBench bench;
      Arena arena(format, 0, 0);
      operation.run(bench.device, arena, kRows);
      const Index needed = bench.ledger.peak().total();
      for (const Index budget : {needed, needed - 1, needed / 2, needed / 3, needed / 10}) {
        Recorder recorder(0);
        Ledger ledger("device", recorder, budget);
        CpuDevice device(ledger);
        Arena again(format, 0, 0);
        if (budget == needed) {
          operation.run(device, again, kRows);
          CHECK(again.results() == arena.results());
        } else if (budget >= 0 && needed > 0) {
          CHECK_THROWS_AS(operation.run(device, again, kRows), OutOfMemory);
        }
        CHECK(ledger.live().total() == 0);
      }
    }
  }
}

TEST_CASE("the bits of 16-bit results do not depend on where the tensors lie", "[sixteen]") {
  for (const Format& format : kFormats) {
    for (const Operation& operation : kOperations) {
      for (const Index rows : {kWidth, 20 * kWidth}) {
        INFO(name_of(format.dtype) << " " << operation.name << " rows " << rows);
        const auto results = [&](Index first, Index step) {
          CpuBench bench;
          Arena arena(format, first, step);
          operation.run(bench.device, arena, rows);
          return arena.results();
        };
        const auto aligned = results(0, 0);
        for (const Index offset : {1, 3, 8}) {
          CHECK(results(offset, 0) == aligned);
          CHECK(results(offset, 7) == aligned);
        }
      }
    }
  }
}
