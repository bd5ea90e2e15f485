#pragma once

#include <deque>
#include <functional>
#include <string>
#include <vector>

#include "stages/engine/stage.hpp"

namespace zerolab {

/// A gradient that waits to be reduced. `whole` holds it in the stages that let it go afterwards;
/// in stages 0 and 1 it lies in the flat gradient buffer and `whole` is empty.
struct ReadyGradient {
  Parameter* parameter = nullptr;
  Buffer whole;
  Index elements = 0;  // with padding
  MicroStep micro_step = {};
};
using Bucket = std::vector<ReadyGradient>;

/// Collects gradients as they get ready and reduces them a bucket at a time. A bucket holds whole
/// gradients of at most `reduce_bucket_size` elements together; one that is larger than that is a
/// bucket of its own. With `overlap_comm` one bucket is reduced while the next one fills.
class GradientBuckets {
 public:
  /// Starts the collective for a bucket.
  using Reduce = std::function<Pending(const Bucket& bucket, std::string owner)>;
  /// The collective is done: the owned parts hold the mean.
  using Reduced = std::function<void(const Bucket& bucket)>;

  GradientBuckets(Runtime& runtime, Reduce reduce, Reduced reduced = {});

  void add(ReadyGradient gradient);
  /// Reduces what is left and waits for everything.
  void flush();

 private:
  struct Sent {
    Bucket bucket;
    Pending pending;
  };

  void send();
  void finish_oldest();

  Runtime& runtime_;
  Reduce reduce_;
  Reduced reduced_;
  Bucket filling_;
  Index elements_ = 0;
  std::deque<Sent> reducing_;
};

}  // namespace zerolab
