#pragma once

#include <array>
#include <functional>
#include <string>

#include "stages/engine/bucket_replay.hpp"
#include "stages/engine/reduce_bucket.hpp"

namespace zerolab {

/// Collects gradients as they get ready and reduces them a bucket at a time. A bucket holds whole
/// gradients of at most `reduce_bucket_size` elements together; one that is larger than that is a
/// bucket of its own. With `overlap_comm` one bucket is reduced while the other one fills.
///
/// It answers for its memory: with buckets of another size they would have been sent elsewhere.
class GradientBuckets : private Governor {
 public:
  /// Which part of each gradient of a bucket is whose: a run for each.
  using Runs = std::function<std::vector<Run>(const Bucket& bucket)>;
  /// Starts the collective for a bucket: reduce_to_owners, reduce_to_all.
  using Reduce = std::function<Pending(Runtime& runtime, const std::vector<Run>& runs,
                                       std::string owner, const Governor* governor)>;
  /// The collective is done: the owned parts hold the mean.
  using Reduced = std::function<void(const Bucket& bucket)>;

  GradientBuckets(Runtime& runtime, Runs runs, Reduce reduce, Reduced reduced = {});

  /// `all_elements`: of every gradient together, with padding. No bucket is larger than that.
  void set_up(Index all_elements);
  void add(ReadyGradient gradient);
  /// Reduces what is left and waits for everything.
  void flush();

 private:
  std::vector<Setting> settings() const override;
  Index bytes_at(std::size_t index, Index value, const Held& held) const override;

  ReduceBucket& filling() { return buckets_[filling_]; }
  ReduceBucket& other() { return buckets_[1 - filling_]; }
  BucketRules rules() const;
  BucketEntry entry_of(ReadyGradient& gradient);
  template <typename Work>
  void put(BucketEntry entry, Work work);
  void send();
  void finish(ReduceBucket& bucket);

  Runtime& runtime_;
  HighWater since_;  // the last entry
  Runs runs_;
  Reduce reduce_;
  Reduced reduced_;
  Index all_elements_ = 0;
  Index capacity_ = 0;
  std::array<ReduceBucket, 2> buckets_;
  std::size_t filling_ = 0;
  // What has been put in, for a replay: in this pass, and in the one before.
  std::vector<BucketEntry> entries_, last_pass_;
  BucketReplay so_far_;
  bool putting_ = false;  // the last of the entries is going in
};

/// Brings the means of these runs to the ranks that own their parts: by reduce-scatter, or by an
/// all-reduce when `reduce_scatter` is off: twice the bytes, the same bits.
Pending reduce_to_owners(Runtime& runtime, const std::vector<Run>& runs, std::string owner,
                         const Governor* governor = nullptr);
/// Brings them to every rank.
Pending reduce_to_all(Runtime& runtime, const std::vector<Run>& runs, std::string owner,
                      const Governor* governor = nullptr);

}  // namespace zerolab
