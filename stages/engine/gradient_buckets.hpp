#pragma once

#include <array>
#include <functional>
#include <string>

#include "stages/engine/reduce_bucket.hpp"

namespace zerolab {

/// Collects gradients as they get ready and reduces them a bucket at a time. A bucket holds whole
/// gradients of at most `reduce_bucket_size` elements together; one that is larger than that is a
/// bucket of its own. With `overlap_comm` one bucket is reduced while the other one fills.
class GradientBuckets {
 public:
  /// Starts the collective for a bucket.
  using Reduce = std::function<Pending(const Bucket& bucket, std::string owner)>;
  /// The collective is done: the owned parts hold the mean.
  using Reduced = std::function<void(const Bucket& bucket)>;

  GradientBuckets(Runtime& runtime, Reduce reduce, Reduced reduced = {});

  /// `all_elements`: of every gradient together, with padding. No bucket is larger than that.
  void set_up(Index all_elements);
  void add(ReadyGradient gradient);
  /// Reduces what is left and waits for everything.
  void flush();

 private:
  ReduceBucket& filling() { return buckets_[filling_]; }
  ReduceBucket& other() { return buckets_[1 - filling_]; }
  void send();
  void finish(ReduceBucket& bucket);

  Runtime& runtime_;
  Reduce reduce_;
  Reduced reduced_;
  Index capacity_ = 0;
  std::array<ReduceBucket, 2> buckets_;
  std::size_t filling_ = 0;
};

/// Brings the means of these runs to the ranks that own their parts: by reduce-scatter, or by an
/// all-reduce when `reduce_scatter` is off: twice the bytes, the same bits.
Pending reduce_to_owners(Runtime& runtime, const std::vector<Run>& runs, std::string owner);
/// Brings them to every rank.
Pending reduce_to_all(Runtime& runtime, const std::vector<Run>& runs, std::string owner);

}  // namespace zerolab
