#include "tests/comm/conformance.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <numeric>

#include "stages/base/hash.hpp"
#include "stages/base/philox.hpp"
#include "stages/comm/collectives.hpp"
#include "tests/support/sum_device.hpp"

namespace zerolab {
namespace {

using Bounds = std::vector<Index>;
using Values = std::vector<float>;

/// Different on every rank. Tables, since the same elements are looked up many times.
using Input = std::vector<Values>;  // [rank][element]
constexpr Index kLongest = 100000;

std::size_t at(Index i) { return static_cast<std::size_t>(i); }

// Sums of these are exact in any order.
float whole_number(int rank, Index i) { return static_cast<float>((i * 7 + rank * 131) % 1000); }

// Sums of these depend on the order.
float random_number(int rank, Index i) {
  const Philox philox(42);
  return almost_normal(philox(static_cast<std::uint64_t>(rank), static_cast<std::uint64_t>(i)), 1);
}

Input table(int ranks, float (*element)(int rank, Index i)) {
  Input result(at(ranks), Values(at(kLongest + 100)));
  for (int r = 0; r < ranks; ++r) {
    for (std::size_t i = 0; i < result[at(r)].size(); ++i) {
      result[at(r)][i] = element(r, static_cast<Index>(i));
    }
  }
  return result;
}

float ordered_sum(const Input& input, std::size_t element, float factor) {
  float sum = input[0][element];
  for (std::size_t r = 1; r < input.size(); ++r) sum += input[r][element];
  return sum * factor;
}

/// Cuts `n` elements among `ranks` in several ways: in equal parts, in rising parts, with empty
/// parts between, everything to the last.
std::vector<Bounds> cuts(Index n, int ranks) {
  std::vector<Bounds> result(4, Bounds{0});
  for (Index r = 1; r <= ranks; ++r) {
    const Index last = r == ranks ? n : 0;
    result[0].push_back(std::min(n, ceil_div(n, ranks) * r));
    result[1].push_back(n * r * (r + 1) / (ranks * (Index{ranks} + 1)));
    result[2].push_back(std::max(last, n * (r / 2) / ranks));
    result[3].push_back(last);
  }
  return result;
}

class Suite {
 public:
  explicit Suite(Communicator& communicator)
      : communicator_(communicator),
        rank_(communicator.rank()),
        size_(communicator.size()),
        recorder_(rank_),
        ledger_("device", recorder_),
        stream_(communicator, device_, ledger_, recorder_),
        whole_numbers_(table(size_, whole_number)),
        random_numbers_(table(size_, random_number)) {}

  Conformance run() {
    for (const Index n : {0, 1, 3, 5, 33}) {
      for (const Bounds& bounds : cuts(n, size_)) run_collectives({bounds});
    }
    run_collectives({cuts(kLongest, size_)[1]});
    std::vector<Bounds> several;
    for (const Index n : {33, 1, 0, 1000, 5}) {
      for (const Bounds& bounds : cuts(n, size_)) several.push_back(bounds);
    }
    run_collectives(several);
    run_collectives({});
    check_broadcast();
    check_share();
    check_barrier();
    check_overlap();
    check_forgotten();
    return std::move(result_);
  }

 private:
  template <typename... Args>
  void expect(bool holds, fmt::format_string<Args...> text, Args&&... args) {
    if (holds || result_.problems.size() > 20) return;
    result_.problems.push_back(fmt::format("rank {} of {}: ", rank_, size_) +
                               fmt::format(text, std::forward<Args>(args)...));
  }

  void run_collectives(const std::vector<Bounds>& runs) {
    for (const Input* input : {&whole_numbers_, &random_numbers_}) {
      check_gather(runs, *input);
      check_reduction(runs, *input, Op::reduce_scatter);
      check_reduction(runs, *input, Op::all_reduce);
    }
  }

  static int owner_of(const Bounds& bounds, Index i) {
    return static_cast<int>(std::upper_bound(bounds.begin(), bounds.end(), i) - bounds.begin()) - 1;
  }

  Index own_elements(const std::vector<Bounds>& runs) const {
    Index sum = 0;
    for (const Bounds& bounds : runs) sum += bounds[at(rank_) + 1] - bounds[at(rank_)];
    return sum;
  }

  static Index elements(const std::vector<Bounds>& runs) {
    Index sum = 0;
    for (const Bounds& bounds : runs) sum += bounds.back();
    return sum;
  }

  /// Element i of run k is element i + k of the input, so that runs differ.
  std::vector<Values> filled(const std::vector<Bounds>& runs, const Input& input) const {
    std::vector<Values> memory;
    for (std::size_t k = 0; k < runs.size(); ++k) {
      const auto first = input[at(rank_)].begin() + static_cast<Index>(k);
      memory.emplace_back(first, first + runs[k].back());
    }
    return memory;
  }

  static std::vector<Run> over(std::vector<Values>& memory, const std::vector<Bounds>& runs) {
    std::vector<Run> result;
    for (std::size_t k = 0; k < runs.size(); ++k) result.push_back({memory[k].data(), runs[k]});
    return result;
  }

  template <typename Expected>
  void compare(Op op, const std::vector<Values>& memory, const Expected& expected) {
    for (std::size_t k = 0; k < memory.size(); ++k) {
      for (std::size_t i = 0; i < memory[k].size(); ++i) {
        const float wanted = expected(k, i);
        const auto bits = std::bit_cast<std::uint32_t>(memory[k][i]);
        result_.hash += hash_element(k, i, bits);
        if (bits == std::bit_cast<std::uint32_t>(wanted)) continue;
        expect(false, "{} of {} elements: element {} of run {} is {}, not {}", name_of(op),
               memory[k].size(), i, k, memory[k][i], wanted);
      }
    }
  }

  /// Waits, and checks what was counted.
  void finish(Pending pending, Op op, Index count, Index bytes) {
    const auto counted = [&] { return stream_.totals().traffic[op]; };
    const Traffic before = counted();
    const bool called = static_cast<bool>(pending);
    stream_.wait(pending);
    const Traffic after = counted();
    expect(called == (count > 0), "{} of {} elements: called {}", name_of(op), count, called);
    expect(!pending, "{}: the pending is not empty after wait", name_of(op));
    expect(after.calls - before.calls == (count > 0 ? 1 : 0), "{}: calls", name_of(op));
    expect(after.elements - before.elements == count, "{}: elements", name_of(op));
    expect(after.bytes_sent - before.bytes_sent == bytes, "{} of {} elements: {} bytes, not {}",
           name_of(op), count, after.bytes_sent - before.bytes_sent, bytes);
    expect(ledger_.live().total() == 0, "{}: the receive buffer was not given back", name_of(op));
  }

  void check_gather(const std::vector<Bounds>& runs, const Input& input) {
    std::vector<Values> memory = filled(runs, input);
    finish(all_gather(stream_, over(memory, runs), "gather"), Op::all_gather, elements(runs),
           own_elements(runs) * (size_ - 1) * 4);
    compare(Op::all_gather, memory, [&](std::size_t k, std::size_t i) {
      return input[at(owner_of(runs[k], static_cast<Index>(i)))][i + k];
    });
  }

  void check_reduction(const std::vector<Bounds>& runs, const Input& input, Op op) {
    const float factor = 1 / static_cast<float>(size_ * 3);
    const bool all = op == Op::all_reduce;
    std::vector<Values> memory = filled(runs, input);
    Pending pending = all ? all_reduce(stream_, over(memory, runs), factor, "reduce")
                          : reduce_scatter(stream_, over(memory, runs), factor, "reduce");
    const Index held = ledger_.live()[Category::reduce_buffers];
    expect(held <= 4 * std::max<Index>(elements(runs), size_ - 1),
           "{} of {} elements: a receive buffer of {} bytes", name_of(op), elements(runs), held);
    const Index own = own_elements(runs);
    finish(std::move(pending), op, elements(runs),
           4 * (elements(runs) - own + (all ? own * (size_ - 1) : 0)));
    compare(op, memory, [&](std::size_t k, std::size_t i) {
      const bool reduced = all || owner_of(runs[k], static_cast<Index>(i)) == rank_;
      return reduced ? ordered_sum(input, i + k, factor) : input[at(rank_)][i + k];
    });
  }

  void check_broadcast() {
    for (int root = 0; root < size_; ++root) {
      for (const Index n : {0, 1, 33, 5000}) {
        Values values = filled({{0, n}}, random_numbers_)[0];
        finish(broadcast(stream_, std::as_writable_bytes(std::span(values)), root, "broadcast"),
               Op::broadcast, 4 * n, rank_ == root ? 4 * n * (size_ - 1) : 0);
        compare(Op::broadcast, {values},
                [&](std::size_t, std::size_t i) { return random_numbers_[at(root)][i]; });
      }
    }
  }

  void check_share() {
    const auto mine = static_cast<std::byte>(rank_ + 1);
    const auto all = share(stream_, std::span(&mine, 1), "share");
    expect(all.size() == at(size_), "share: {} entries", all.size());
    for (std::size_t r = 0; r < all.size(); ++r) {
      expect(all[r] == std::vector{static_cast<std::byte>(r + 1)}, "share: entry {}", r);
    }
    // The questions of a checker count as control too.
    const Index questions = communicator_.extra_bytes_sent();
    expect(stream_.totals().traffic.at(Op::control).bytes_sent - questions == size_ - 1,
           "share: bytes");
    expect(share(stream_, {}, "nothing").size() == at(size_), "share of nothing");
    expect(stream_.totals().traffic.at(Op::control).calls == 1, "share: calls");
  }

  void check_barrier() {
    barrier(stream_, "barrier");
    expect(stream_.totals().traffic.at(Op::barrier).calls == 1, "barrier: calls");
    expect(stream_.totals().traffic.at(Op::barrier).bytes_sent == 0, "barrier: bytes");
  }

  /// Many collectives under way, waited for in several orders.
  void check_overlap() {
    constexpr int kMany = 24;
    std::vector<int> order(kMany);
    std::iota(order.begin(), order.end(), 0);
    for (int stride : {1, kMany - 1, 7}) {  // as issued, backwards, shuffled
      std::vector<std::vector<Values>> memory;
      std::vector<std::vector<Bounds>> runs;
      std::vector<Pending> pendings;
      for (const int k : order) runs.push_back(cuts(1 + 97 * k, size_));
      for (const auto& each : runs) memory.push_back(filled(each, random_numbers_));
      for (const int k : order) {
        pendings.push_back(all_reduce(stream_, over(memory[at(k)], runs[at(k)]), 1, "many"));
      }
      for (const int k : order) stream_.wait(pendings[at(k * stride % kMany)]);
      for (const auto& each : memory) {
        compare(Op::all_reduce, each, [&](std::size_t k, std::size_t i) {
          return ordered_sum(random_numbers_, i + k, 1);
        });
      }
    }
    expect(ledger_.live().total() == 0, "overlap: buffers left");
    expect(stream_.totals().busy_seconds > 0 && stream_.totals().exposed_seconds > 0,
           "overlap: no time passed");
  }

  /// A pending that is destroyed unwaited has kept its memory until the worker was done.
  void check_forgotten() {
    const std::vector<Bounds> runs = {cuts(1000, size_)[1]};
    std::vector<Values> memory = filled(runs, whole_numbers_);
    { const Pending forgotten = all_reduce(stream_, over(memory, runs), 1, "forgotten"); }
    expect(ledger_.live().total() == 0, "forgotten: buffers left");
    compare(Op::all_reduce, memory,
            [&](std::size_t, std::size_t i) { return ordered_sum(whole_numbers_, i, 1); });
  }

  Communicator& communicator_;
  int rank_;
  int size_;
  SumDevice device_;
  Recorder recorder_;
  Ledger ledger_;
  CommStream stream_;
  Input whole_numbers_;
  Input random_numbers_;
  Conformance result_;
};

}  // namespace

Conformance check_conformance(Communicator& communicator) { return Suite(communicator).run(); }

}  // namespace zerolab
