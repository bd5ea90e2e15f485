#include "stages/engine/gradient_buckets.hpp"

#include <utility>

#include "stages/engine/states.hpp"
#include "stages/model/parameter_state.hpp"

namespace zerolab {
GradientBuckets::GradientBuckets(Runtime& runtime, Reduce reduce, Reduced reduced)
    : runtime_(runtime), reduce_(std::move(reduce)), reduced_(std::move(reduced)) {}

void GradientBuckets::add(ReadyGradient gradient) {
  ParameterState::move_gradient(*gradient.parameter, GradientStatus::ready, runtime_.recorder);
  const Index capacity = runtime_.settings.zero.reduce_bucket_size;
  if (!filling_.empty() && elements_ + gradient.elements > capacity) send();
  elements_ += gradient.elements;
  filling_.push_back(std::move(gradient));
  if (elements_ >= capacity) send();
}

void GradientBuckets::flush() {
  if (!filling_.empty()) send();
  while (!reducing_.empty()) finish_oldest();
}

void GradientBuckets::send() {
  // Back-pressure: the bucket before this one must be through.
  while (!reducing_.empty()) finish_oldest();
  std::vector<Parameter*> parameters;
  for (const ReadyGradient& gradient : filling_) {
    ParameterState::move_gradient(*gradient.parameter, GradientStatus::reducing, runtime_.recorder);
    parameters.push_back(gradient.parameter);
  }
  Pending pending = reduce_(filling_, names_of(parameters));
  reducing_.push_back({std::exchange(filling_, {}), std::move(pending)});
  elements_ = 0;
  if (!runtime_.settings.zero.overlap_comm) finish_oldest();
}

void GradientBuckets::finish_oldest() {
  runtime_.comm.wait(reducing_.front().pending);
  const Bucket bucket = std::move(reducing_.front().bucket);
  reducing_.pop_front();
  for (const ReadyGradient& gradient : bucket) {
    ParameterState::move_gradient(*gradient.parameter, GradientStatus::reduced, runtime_.recorder);
  }
  if (reduced_) reduced_(bucket);
  for (const ReadyGradient& gradient : bucket) {
    if (!gradient.whole) continue;
    ParameterState::move_gradient(*gradient.parameter, GradientStatus::freed, runtime_.recorder);
  }
}

}  // namespace zerolab
