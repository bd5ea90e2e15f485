#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "stages/engine/stage.hpp"

namespace zerolab {

/// A gradient that waits to be reduced: `elements` of it, with padding, at `data`. A whole gradient
/// that goes when its owned part is kept brings its buffer along; one that stays where it is, in
/// the gradient storage of stages 0 and 1, has none.
struct ReadyGradient {
  Parameter* parameter = nullptr;
  Values data = {};
  Index elements = 0;
  MicroStep micro_step = {};
  Buffer whole = {};
  bool goes = static_cast<bool>(whole);
};
using Bucket = std::vector<ReadyGradient>;

enum class BucketState {
  free,      // empty
  filling,   // gradients are put in
  ready,     // closed; it may be sent
  reducing,  // a collective reads and writes it: nobody else may
};
std::string_view name_of(BucketState state);

/// One reduce bucket. It goes free -> filling -> ready -> reducing -> free, and every call checks
/// that it comes in turn: a gradient written into a bucket that a collective is reading would
/// change the sum, now and then. Throws Error (Code::bucket_state) with the bucket and the step.
class ReduceBucket {
 public:
  /// `governor` answers for the memory of the buckets; it outlives them.
  ReduceBucket(Runtime& runtime, int number, const Governor* governor = nullptr);

  /// free or filling -> filling. With contiguous_gradients a gradient that has a buffer of its own
  /// is copied into the bucket's, if that holds `capacity` elements and it fits; its own one goes.
  /// One that is sent as another type than it has is copied in any case.
  void add(ReadyGradient gradient, Index capacity);
  /// filling -> ready.
  const Bucket& close();
  /// ready -> reducing.
  void start(Pending pending);
  /// Waits for the collective. Still reducing: its result may be read, and nothing be put in.
  const Bucket& wait();
  /// reducing -> free. The bucket's own buffer stays for the next gradients.
  void clear();
  /// Gives the bucket's own buffer back. Only while it is free.
  void give_back_buffer();

  BucketState state() const { return state_; }
  Index elements() const { return elements_; }

 private:
  void move(ReadyGradient& gradient, Index capacity);
  void expect(BucketState state, std::string_view what) const;
  [[noreturn]] void out_of_turn(std::string_view what) const;

  Runtime& runtime_;
  int number_;
  const Governor* governor_;
  BucketState state_ = BucketState::free;
  Bucket gradients_;
  Index elements_ = 0;
  Buffer buffer_;
  Pending pending_;
};

}  // namespace zerolab
