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

ReduceBucket::ReduceBucket(Runtime& runtime, int number)
    : runtime_(runtime),
      number_(number),
      size_{"zero_optimization.reduce_bucket_size", runtime.settings.zero.reduce_bucket_size} {}

void ReduceBucket::add(ReadyGradient gradient, Index capacity) {
  if (state_ != BucketState::free && state_ != BucketState::filling) {
    out_of_turn(fmt::format("the gradient of '{}' is put in", gradient.parameter->name()));
  }
  state_ = BucketState::filling;
  gradient.data = gradient.whole ? gradient.whole.floats() : nullptr;
  const bool copied = runtime_.settings.zero.contiguous_gradients && gradient.whole &&
                      elements_ + gradient.elements <= capacity;
  if (copied) {
    if (!buffer_) {
      buffer_ = runtime_.ledger.allocate(capacity * size_of(Dtype::fp32), Category::reduce_buffers,
                                         fmt::format("reduce bucket {}", number_),
                                         capacity == size_.value ? &size_ : nullptr);
    }
    gradient.data = buffer_.floats() + elements_;
    runtime_.device.copy(gradient.data, gradient.whole.floats(), gradient.elements);
    gradient.whole = Buffer();
  }
  elements_ += gradient.elements;
  gradients_.push_back(std::move(gradient));
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
