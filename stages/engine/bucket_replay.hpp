#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

#include "stages/base/types.hpp"

namespace zerolab {

/// A gradient that was put in a bucket, or the end of a pass, in numbers.
struct BucketEntry {
  Index elements = 0;
  Index part = 0;                    // of them, what this rank owns
  std::optional<Index> buffer = {};  // bytes of its own buffer, if it has one that goes
  bool converts = false;             // it is sent as another type than it has
  bool ends = false;                 // no gradient: what is left is sent
  Index before = 0;  // the most bytes there were beside buckets since the entry before it,
  Index beside = 0;  // and what there is while it is put in
};

/// What gradients are put in buckets by, beside the bucket's size (engine/gradient_buckets.hpp).
struct BucketRules {
  int ranks = 1;
  Index element_bytes = 4;  // as they are sent
  bool overlap = false;     // one bucket fills while the other one is reduced
  bool contiguous = false;  // into the bucket's buffer, as far as they fit
};

/// GradientBuckets and ReduceBucket without anything but sizes, so that it can be asked what
/// buckets of another size would have held.
class BucketReplay {
 public:
  BucketReplay() = default;
  BucketReplay(const BucketRules& rules, Index capacity) : rules_(rules), capacity_(capacity) {}

  void put(const BucketEntry& entry);

  /// Bytes, now.
  Index held() const;
  /// The most in the last call of put.
  Index most() const { return most_; }

 private:
  struct Bucket {
    bool used = false;
    Index elements = 0, part = 0;
    Index buffer = 0, apart = 0, receives = 0;  // bytes
  };

  void add(const BucketEntry& entry);
  void send();
  void note() { most_ = std::max(most_, held()); }

  BucketRules rules_;
  Index capacity_ = 0;
  std::array<Bucket, 2> buckets_;
  std::size_t filling_ = 0;
  Index arriving_ = 0;
  Index most_ = 0;
};

/// The highest total that there would have been with such buckets, until the last entry was in.
Index highest_total(const std::vector<BucketEntry>& entries, const BucketRules& rules,
                    Index capacity);

}  // namespace zerolab
