#include "stages/memory/ledger.hpp"

#include <algorithm>
#include <cstring>
#include <map>
#include <utility>

namespace zerolab {
namespace {

constexpr std::size_t kHoldersShown = 5;

// In dev builds memory is NaN before it is written and after it was given back, so that whoever
// reads it by mistake computes NaN and is noticed.
void poison([[maybe_unused]] std::byte* data, [[maybe_unused]] Index bytes) {
#ifdef ZEROLAB_POISON_MEMORY
  std::memset(data, 0xFF, static_cast<std::size_t>(bytes));
#endif
}

std::size_t taken_bytes(Index bytes) {
  return static_cast<std::size_t>(round_up(std::max<Index>(bytes, 1), Ledger::kAlignment));
}

}  // namespace

Buffer::Buffer(Buffer&& other) noexcept
    : ledger_(std::exchange(other.ledger_, nullptr)),
      id_(std::exchange(other.id_, 0)),
      data_(std::exchange(other.data_, nullptr)),
      bytes_(std::exchange(other.bytes_, 0)) {}

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  if (this != &other) {
    reset();
    ledger_ = std::exchange(other.ledger_, nullptr);
    id_ = std::exchange(other.id_, 0);
    data_ = std::exchange(other.data_, nullptr);
    bytes_ = std::exchange(other.bytes_, 0);
  }
  return *this;
}

void Buffer::reset() {
  if (ledger_ == nullptr) return;
  std::exchange(ledger_, nullptr)->release(id_, data_);
  data_ = nullptr;
  bytes_ = 0;
}

HighWater::HighWater(Ledger& ledger) : ledger_(ledger) {
  ledger.high_waters_.push_back(this);
  restart();
}

HighWater::~HighWater() { std::erase(ledger_.high_waters_, this); }

void HighWater::restart() { bytes_ = ledger_.live_total_; }

void Buffer::put_under(const Governor& governor) {
  if (ledger_ != nullptr) ledger_->put_under(id_, governor);
}

Ledger::Ledger(std::string pool, Recorder& recorder, Index budget,
               std::pmr::memory_resource* memory)
    : pool_(std::move(pool)), recorder_(recorder), budget_(budget), memory_(memory) {}

Ledger::~Ledger() = default;

Buffer Ledger::allocate(Index bytes, Category category, std::string owner,
                        const Governor* governor) {
  Block block{bytes, category, std::move(owner), governor};
  if (bytes > budget_ - live_total_) throw OutOfMemory(shortage(block));
  auto* data = static_cast<std::byte*>(memory_->allocate(taken_bytes(bytes), kAlignment));
  poison(data, bytes);
  live_total_ += bytes;
  live_[category] += bytes;
  category_peak_[category] = std::max(category_peak_[category], live_[category]);
  for (HighWater* each : high_waters_) each->bytes_ = std::max(each->bytes_, live_total_);
  if (live_total_ > peak_total_) {
    peak_total_ = live_total_;
    peak_ = live_;
  }
  if (recorder_.active()) {
    recorder_.record(
        AllocEvent{pool_, name_of(category), bytes, live_total_, peak_total_, block.owner});
  }
  const Index id = next_id_++;
  note_change(id, bytes, category).ends = false;
  blocks_.emplace(id, std::move(block));
  return Buffer(this, id, data, bytes);
}

void Ledger::release(Index id, std::byte* data) {
  const auto entry = blocks_.find(id);
  Block& block = entry->second;
  live_total_ -= block.bytes;
  live_[block.category] -= block.bytes;
  if (recorder_.active()) {
    recorder_.record(FreeEvent{pool_, name_of(block.category), block.bytes, live_total_,
                               peak_total_, block.owner});
  }
  poison(data, block.bytes);
  memory_->deallocate(data, taken_bytes(block.bytes), kAlignment);
  Change& change = note_change(id, -block.bytes, block.category);
  change.ends = true;
  change.owner.swap(block.owner);
  blocks_.erase(entry);
}

Ledger::Change& Ledger::note_change(Index id, Index bytes, Category category) {
  Change& change = changes_[next_change_];
  next_change_ = (next_change_ + 1) % kChangesKept;
  change.id = id;
  change.bytes = bytes;
  change.category = category;
  change.live = live_total_;
  recorder_.tell_place(change.place);
  return change;
}

std::vector<Holding> Ledger::holders() const {
  std::map<std::pair<std::string, Category>, Index> sums;
  for (const auto& [id, block] : blocks_) sums[{block.owner, block.category}] += block.bytes;
  std::vector<Holding> result;
  for (const auto& [key, bytes] : sums) {
    if (bytes > 0) result.push_back({key.first, key.second, bytes});
  }
  std::stable_sort(result.begin(), result.end(),
                   [](const Holding& a, const Holding& b) { return a.bytes > b.bytes; });
  return result;
}

Shortage Ledger::shortage(const Block& wanted) const {
  Shortage shortage{.pool = pool_,
                    .rank = recorder_.rank(),
                    .request = {wanted.owner, wanted.category, wanted.bytes},
                    .where = recorder_.where(),
                    .budget = budget_,
                    .live = live_,
                    .largest = holders(),
                    .last = last_changes(),
                    .advice = advice(wanted)};
  shortage.largest.resize(std::min(kHoldersShown, shortage.largest.size()));
  return shortage;
}

// Newest last. Whoever gave something back in the meantime has said so behind it.
std::vector<Shortage::Change> Ledger::last_changes() const {
  const auto owner_of = [this](const Change& change) {
    const auto block = blocks_.find(change.id);
    if (block != blocks_.end()) return block->second.owner;
    return std::find_if(changes_.begin(), changes_.end(),
                        [&](const Change& other) { return other.id == change.id && other.ends; })
        ->owner;
  };
  std::vector<Shortage::Change> result;
  for (std::size_t i = 0; i < kChangesKept; ++i) {
    const Change& change = changes_[(next_change_ + i) % kChangesKept];
    if (change.id == 0) continue;
    result.push_back(
        {{owner_of(change), change.category, change.bytes}, to_string(change.place), change.live});
  }
  return result;
}

// For each setting that something live, or what is asked for, depends on: what it could have been.
std::vector<Shortage::Advice> Ledger::advice(const Block& wanted) const {
  std::map<const Governor*, Index> held;
  for (const auto& [id, block] : blocks_) {
    if (block.governor != nullptr) held[block.governor] += block.bytes;
  }
  if (wanted.governor != nullptr) held[wanted.governor] += wanted.bytes;

  std::vector<Shortage::Advice> result;
  const Index needed = live_total_ + wanted.bytes;
  for (const auto& [governor, bytes] : held) {
    const Governor::Held books{bytes, needed - bytes};
    const std::vector<Setting> settings = governor->settings();
    for (std::size_t i = 0; i < settings.size(); ++i) {
      const auto fits = [&, governor = governor](Index value) {
        return books.beside + governor->bytes_at(i, value, books) <= budget_;
      };
      if (const auto value = nearest_that_fits(settings[i], fits)) {
        result.push_back({settings[i], *value});
      }
    }
  }
  // By name: the order of pointers is not decided.
  std::sort(result.begin(), result.end(),
            [](const auto& a, const auto& b) { return a.setting.name < b.setting.name; });
  return result;
}

}  // namespace zerolab
