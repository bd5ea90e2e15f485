#include "stages/engine/reduce_bucket.hpp"

#include <fmt/format.h>

#include <utility>

#include "stages/base/error.hpp"

namespace zerolab {

std::string_view name_of(BucketState state) {
  switch (state) {
    case BucketState::free:
      return "FREE";
    case BucketState::filling:
      return "FILLING";
    case BucketState::ready:
      return "READY";
    case BucketState::reducing:
      return "REDUCING";
  }
  return "?";
}

ReduceBucket::ReduceBucket(Runtime& runtime, int number, const Governor* governor)
    : runtime_(runtime), number_(number), governor_(governor) {}

void ReduceBucket::add(ReadyGradient gradient, Index capacity) {
  if (state_ != BucketState::free && state_ != BucketState::filling) {
    out_of_turn(fmt::format("the gradient of '{}' is put in", gradient.parameter->name()));
  }
  state_ = BucketState::filling;
  const bool fits = elements_ + gradient.elements <= capacity;
  const bool converted = gradient.data.dtype() != runtime_.settings.communication_dtype();
  const bool collected = runtime_.settings.zero.contiguous_gradients && gradient.whole && fits;
  if (converted || collected) move(gradient, fits ? capacity : 0);
  elements_ += gradient.elements;
  gradients_.push_back(std::move(gradient));
}

// Into the bucket's own buffer of `capacity` elements, or, if that is 0, into one of its own.
void ReduceBucket::move(ReadyGradient& gradient, Index capacity) {
  const Dtype dtype = runtime_.settings.communication_dtype();
  Buffer apart;
  Buffer& buffer = capacity > 0 ? buffer_ : apart;
  if (!buffer) {
    const Index elements = capacity > 0 ? capacity : gradient.elements;
    buffer = runtime_.ledger.allocate(
        elements * size_of(dtype), Category::reduce_buffers,
        capacity > 0
            ? fmt::format("reduce bucket {}", number_)
            : fmt::format("{} (gradient as {})", gradient.parameter->name(), name_of(dtype)),
        governor_);
  }
  const Values place = buffer.values(dtype) + (capacity > 0 ? elements_ : 0);
  runtime_.device.copy(place, gradient.data, gradient.elements);
  gradient.data = place;
  gradient.whole = std::move(apart);
}

const Bucket& ReduceBucket::close() {
  expect(BucketState::filling, "it is closed");
  state_ = BucketState::ready;
  return gradients_;
}

void ReduceBucket::start(Pending pending) {
  expect(BucketState::ready, "it is sent");
  state_ = BucketState::reducing;
  pending_ = std::move(pending);
}

const Bucket& ReduceBucket::wait() {
  expect(BucketState::reducing, "it is waited for");
  runtime_.comm.wait(pending_);
  return gradients_;
}

void ReduceBucket::clear() {
  expect(BucketState::reducing, "it is cleared");
  if (pending_) out_of_turn("it is cleared before its collective is done");
  gradients_.clear();
  elements_ = 0;
  state_ = BucketState::free;
}

void ReduceBucket::give_back_buffer() {
  expect(BucketState::free, "its buffer is given back");
  buffer_ = Buffer();
}

void ReduceBucket::expect(BucketState state, std::string_view what) const {
  if (state_ != state) out_of_turn(what);
}

void ReduceBucket::out_of_turn(std::string_view what) const {
  throw Error(Code::bucket_state,
              fmt::format("reduce bucket {} on rank {} is {} when {} (step {})", number_,
                          runtime_.rank(), name_of(state_), what, runtime_.recorder.step()),
              "a bucket is filled, closed, sent, waited for and cleared, in this order");
}

}  // namespace zerolab
