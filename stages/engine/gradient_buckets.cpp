#include "stages/engine/gradient_buckets.hpp"

#include <algorithm>
#include <utility>

#include "stages/engine/states.hpp"
#include "stages/model/parameter_state.hpp"

namespace zerolab {

GradientBuckets::GradientBuckets(Runtime& runtime, Reduce reduce, Reduced reduced)
    : runtime_(runtime),
      reduce_(std::move(reduce)),
      reduced_(std::move(reduced)),
      buckets_{ReduceBucket(runtime, 0), ReduceBucket(runtime, 1)} {}

void GradientBuckets::set_up(Index all_elements) {
  capacity_ = std::min(runtime_.settings.zero.reduce_bucket_size, all_elements);
}

void GradientBuckets::add(ReadyGradient gradient) {
  ParameterState::move_gradient(*gradient.parameter, GradientStatus::ready, runtime_.recorder);
  if (filling().elements() + gradient.elements > capacity_) send();
  filling().add(std::move(gradient), capacity_);
  if (filling().elements() >= capacity_) send();
}

void GradientBuckets::flush() {
  send();
  for (ReduceBucket& bucket : buckets_) {
    finish(bucket);
    bucket.give_back_buffer();
  }
}

void GradientBuckets::send() {
  if (filling().state() == BucketState::free) return;
  finish(other());  // back-pressure: the bucket before this one must be through
  const Bucket& bucket = filling().close();
  std::vector<Parameter*> parameters;
  for (const ReadyGradient& gradient : bucket) {
    ParameterState::move_gradient(*gradient.parameter, GradientStatus::reducing, runtime_.recorder);
    parameters.push_back(gradient.parameter);
  }
  filling().start(reduce_(bucket, names_of(parameters)));
  if (runtime_.settings.zero.overlap_comm) {
    filling_ = 1 - filling_;
  } else {
    finish(filling());
  }
}

void GradientBuckets::finish(ReduceBucket& bucket) {
  if (bucket.state() == BucketState::free) return;
  const Bucket& gradients = bucket.wait();
  for (const ReadyGradient& gradient : gradients) {
    ParameterState::move_gradient(*gradient.parameter, GradientStatus::reduced, runtime_.recorder);
  }
  if (reduced_) reduced_(gradients);
  for (const ReadyGradient& gradient : gradients) {
    if (!gradient.goes) continue;
    ParameterState::move_gradient(*gradient.parameter, GradientStatus::freed, runtime_.recorder);
  }
  bucket.clear();
}

namespace {

float prepare(Runtime& runtime, const std::vector<Run>& runs) {
  const MeanFactors factors = mean_factors(runtime);
  if (factors.before != 1) {
    for (const Run& run : runs) runtime.device.scale(run.data, run.elements(), factors.before);
  }
  return factors.after;
}

}  // namespace

Pending reduce_to_owners(Runtime& runtime, const std::vector<Run>& runs, std::string owner) {
  const auto reduce = runtime.settings.zero.reduce_scatter ? reduce_scatter : all_reduce;
  return reduce(runtime.comm, runs, prepare(runtime, runs), std::move(owner), nullptr);
}

Pending reduce_to_all(Runtime& runtime, const std::vector<Run>& runs, std::string owner) {
  return all_reduce(runtime.comm, runs, prepare(runtime, runs), std::move(owner), nullptr);
}

}  // namespace zerolab
