#include "stages/engine/gradient_buckets.hpp"

#include <algorithm>
#include <utility>

#include "stages/base/scoped.hpp"
#include "stages/engine/states.hpp"
#include "stages/model/parameter_state.hpp"

namespace zerolab {

GradientBuckets::GradientBuckets(Runtime& runtime, Runs runs, Reduce reduce, Reduced reduced)
    : runtime_(runtime),
      since_(runtime.ledger),
      runs_(std::move(runs)),
      reduce_(std::move(reduce)),
      reduced_(std::move(reduced)),
      buckets_{ReduceBucket(runtime, 0, this), ReduceBucket(runtime, 1, this)} {}

void GradientBuckets::set_up(Index all_elements) {
  all_elements_ = all_elements;
  capacity_ = std::min(runtime_.settings.zero.reduce_bucket_size, all_elements);
}

void GradientBuckets::add(ReadyGradient gradient) {
  ParameterState::move_gradient(*gradient.parameter, GradientStatus::ready, runtime_.recorder);
  put(entry_of(gradient), [&] {
    if (filling().elements() + gradient.elements > capacity_) send();
    filling().add(std::move(gradient), capacity_);
    if (filling().elements() >= capacity_) send();
  });
}

void GradientBuckets::flush() {
  put({.ends = true}, [this] {
    send();
    for (ReduceBucket& bucket : buckets_) {
      finish(bucket);
      bucket.give_back_buffer();
    }
  });
  last_pass_ = std::exchange(entries_, {});
}

// What has to be known of it for a replay.
BucketEntry GradientBuckets::entry_of(ReadyGradient& gradient) {
  BucketEntry entry{.elements = gradient.elements,
                    .converts = gradient.data.dtype() != runtime_.settings.communication_dtype()};
  if (gradient.whole) entry.buffer = gradient.whole.bytes();
  gradient.whole.put_under(*this);
  Bucket alone;
  alone.push_back(
      {.parameter = gradient.parameter, .data = gradient.data, .elements = gradient.elements});
  for (const Run& run : runs_(alone)) {
    const auto rank = static_cast<std::size_t>(runtime_.rank());
    entry.part += run.bounds[rank + 1] - run.bounds[rank];
  }
  return entry;
}

// Between two entries what buckets hold does not change, and while one goes in nothing else does.
template <typename Work>
void GradientBuckets::put(BucketEntry entry, Work work) {
  if (entries_.empty()) so_far_ = BucketReplay(rules(), capacity_);
  entry.before = since_.bytes() - so_far_.held();
  entry.beside = runtime_.ledger.live().total() - so_far_.held() - entry.buffer.value_or(0);
  entries_.push_back(entry);
  so_far_.put(entry);
  {
    const Scoped putting(putting_, true);
    work();
  }
  since_.restart();
}

BucketRules GradientBuckets::rules() const {
  const Settings& settings = runtime_.settings;
  return {.ranks = runtime_.ranks(),
          .element_bytes = size_of(settings.communication_dtype()),
          .overlap = settings.zero.overlap_comm,
          .contiguous = settings.zero.contiguous_gradients};
}

std::vector<Setting> GradientBuckets::settings() const {
  return {{"zero_optimization.reduce_bucket_size", runtime_.settings.zero.reduce_bucket_size}};
}

// Buckets of another size would have been sent elsewhere in this pass, and in the one before: there
// must have been room for that, too. If a replay of what has been does not come to what is there,
// its word on what might have been is worth nothing.
Index GradientBuckets::bytes_at(std::size_t /*index*/, Index value, const Held& held) const {
  const bool agrees = putting_ ? so_far_.most() >= held.bytes : so_far_.held() == held.bytes;
  if (!agrees) return held.bytes;
  const Index capacity = std::min(value, all_elements_);
  BucketReplay now(rules(), capacity);
  for (const BucketEntry& entry : entries_) now.put(entry);
  const Index since = putting_ ? 0 : since_.bytes() - so_far_.held() + now.held();
  const Index highest = std::max({since, highest_total(entries_, rules(), capacity),
                                  highest_total(last_pass_, rules(), capacity)});
  return std::max(putting_ ? now.most() : now.held(), highest - held.beside);
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
  filling().start(reduce_(runtime_, runs_(bucket), names_of(parameters), this));
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

Pending reduce_to_owners(Runtime& runtime, const std::vector<Run>& runs, std::string owner,
                         const Governor* governor) {
  const auto reduce = runtime.settings.zero.reduce_scatter ? reduce_scatter : all_reduce;
  return reduce(runtime.comm, runs, prepare(runtime, runs), std::move(owner), governor);
}

Pending reduce_to_all(Runtime& runtime, const std::vector<Run>& runs, std::string owner,
                      const Governor* governor) {
  return all_reduce(runtime.comm, runs, prepare(runtime, runs), std::move(owner), governor);
}

}  // namespace zerolab
