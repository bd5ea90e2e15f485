#include "stages/engine/bucket_replay.hpp"

#include "tests/support/catch.hpp"

namespace zerolab {
namespace {

constexpr int kRanks = 3;

/// Gradients of 30, 60 and 45 elements of 4 bytes, a third of each this rank's, with buffers of
/// their own.
std::vector<BucketEntry> first_gradients(std::size_t count) {
  std::vector<BucketEntry> entries{{30, 10, 120}, {60, 20, 240}, {45, 15, 180}};
  entries.resize(count);
  return entries;
}

BucketRules rules(bool overlap, bool contiguous) {
  return {.ranks = kRanks, .element_bytes = 4, .overlap = overlap, .contiguous = contiguous};
}

struct Bytes {
  Index most = 0;  // while the last entry was put in
  Index held = 0;  // then

  bool operator==(const Bytes&) const = default;
};

Bytes after(const std::vector<BucketEntry>& entries, const BucketRules& rules, Index capacity) {
  BucketReplay replay(rules, capacity);
  for (const BucketEntry& entry : entries) replay.put(entry);
  return {replay.most(), replay.held()};
}

}  // namespace

TEST_CASE("a replay of gradients that wait in their own buffers counts these, and what arrives") {
  const BucketRules plain = rules(false, false);
  CHECK(after({}, plain, 100) == Bytes{0, 0});
  CHECK(after(first_gradients(1), plain, 100) == Bytes{120, 120});
  CHECK(after(first_gradients(2), plain, 100) == Bytes{360, 360});
  // The third does not fit: the first two go, two thirds of their size arriving, while it waits.
  CHECK(after(first_gradients(3), plain, 100) == Bytes{540 + 240, 180});
  // Each is a bucket of its own.
  CHECK(after(first_gradients(3), plain, 1) == Bytes{180 + 120, 0});
}

TEST_CASE("at the end of a pass a replay sends what is left, and nothing stays") {
  std::vector<BucketEntry> entries = first_gradients(3);
  entries.push_back({.ends = true});
  CHECK(after(entries, rules(false, false), 100) == Bytes{180 + 120, 0});
  CHECK(after(entries, rules(true, true), 100) == Bytes{800 + 240, 0});
}

TEST_CASE("a replay of gradients that are collected counts the bucket's buffer") {
  const BucketRules contiguous = rules(false, true);
  // While a gradient is copied its own buffer is there, too.
  CHECK(after(first_gradients(1), contiguous, 100) == Bytes{120 + 400, 400});
  CHECK(after(first_gradients(2), contiguous, 100).held == 400);
  // Larger than the bucket: it stays where it is.
  CHECK(after(first_gradients(2), contiguous, 50) == Bytes{240 + 200 + 160, 200});
}

TEST_CASE("a replay with overlap counts the bucket that is on its way") {
  CHECK(after(first_gradients(2), rules(true, false), 50).held == 240 + 160);
  CHECK(after(first_gradients(3), rules(true, false), 100).held == 540 + 240);
  CHECK(after(first_gradients(3), rules(true, true), 100).held == 800 + 240);
}

TEST_CASE("a replay of gradients sent as another type counts their copies") {
  const std::vector<BucketEntry> entries{{30, 10, std::nullopt, true}, {60, 20, 120, true}};
  const BucketRules plain = rules(false, false);
  CHECK(after(entries, plain, 100) == Bytes{400 + 120, 400});
  // The first fits and is sent, the second is copied into a buffer of its own.
  CHECK(after(entries, plain, 40) == Bytes{160 + 240 + 160, 160});
}

TEST_CASE("the highest total of a pass is of buckets and of what was there beside them") {
  std::vector<BucketEntry> entries = first_gradients(3);
  const BucketRules plain = rules(false, false);
  CHECK(highest_total(entries, plain, 100) == 540 + 240);
  entries[2].before = 1000;  // while the first two wait
  CHECK(highest_total(entries, plain, 100) == 360 + 1000);
  CHECK(highest_total(entries, plain, 1) == 1000);
  entries[1].beside = 900;
  CHECK(highest_total(entries, plain, 1) == 240 + 160 + 900);
}

}  // namespace zerolab
