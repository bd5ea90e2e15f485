#include "stages/engine/bucket_replay.hpp"

#include <utility>

#include "stages/comm/collectives.hpp"

namespace zerolab {

void BucketReplay::put(const BucketEntry& entry) {
  arriving_ = entry.buffer.value_or(0);
  most_ = held();
  if (!entry.ends) {
    add(entry);
    return;
  }
  send();
  buckets_ = {};
}

void BucketReplay::add(const BucketEntry& entry) {
  if (buckets_[filling_].elements + entry.elements > capacity_) send();
  Bucket& bucket = buckets_[filling_];
  const bool fits = bucket.elements + entry.elements <= capacity_;
  if (entry.converts || (rules_.contiguous && entry.buffer && fits)) {
    if (fits) {
      bucket.buffer = capacity_ * rules_.element_bytes;
    } else {
      bucket.apart += entry.elements * rules_.element_bytes;
    }
    note();
    arriving_ = 0;
  }
  bucket.apart += std::exchange(arriving_, 0);
  bucket.elements += entry.elements;
  bucket.part += entry.part;
  bucket.used = true;
  if (bucket.elements >= capacity_) send();
}

void BucketReplay::send() {
  Bucket& bucket = buckets_[filling_];
  if (!bucket.used) return;
  Bucket& other = buckets_[1 - filling_];
  other = {.buffer = other.buffer};
  bucket.receives =
      receive_elements(bucket.elements, bucket.part, rules_.ranks) * rules_.element_bytes;
  note();
  if (rules_.overlap) {
    filling_ = 1 - filling_;
  } else {
    bucket = {.buffer = bucket.buffer};
  }
}

Index BucketReplay::held() const {
  Index sum = arriving_;
  for (const Bucket& bucket : buckets_) sum += bucket.buffer + bucket.apart + bucket.receives;
  return sum;
}

Index highest_total(const std::vector<BucketEntry>& entries, const BucketRules& rules,
                    Index capacity) {
  BucketReplay replay(rules, capacity);
  Index highest = 0;
  for (const BucketEntry& entry : entries) {
    highest = std::max(highest, replay.held() + entry.before);
    replay.put(entry);
    highest = std::max(highest, replay.most() + entry.beside);
  }
  return highest;
}

}  // namespace zerolab
