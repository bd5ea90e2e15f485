#pragma once

#include <array>
#include <limits>
#include <memory_resource>
#include <string>
#include <unordered_map>
#include <vector>

#include "stages/base/values.hpp"
#include "stages/memory/out_of_memory.hpp"
#include "stages/trace/recorder.hpp"

namespace zerolab {

class Ledger;

/// The highest total of a ledger since a moment.
class HighWater {
 public:
  explicit HighWater(Ledger& ledger);
  ~HighWater();
  HighWater(const HighWater&) = delete;
  HighWater& operator=(const HighWater&) = delete;

  Index bytes() const { return bytes_; }
  /// From now on.
  void restart();

 private:
  friend class Ledger;
  Ledger& ledger_;
  Index bytes_ = 0;
};

/// Owns a piece of a pool; gives it back when it goes. Aligned to 64 bytes.
class Buffer {
 public:
  Buffer() = default;
  Buffer(Buffer&& other) noexcept;
  Buffer& operator=(Buffer&& other) noexcept;
  ~Buffer() { reset(); }

  std::byte* data() const { return data_; }
  float* floats() const { return reinterpret_cast<float*>(data_); }
  Values values(Dtype dtype) const { return {data_, dtype}; }
  Index bytes() const { return bytes_; }
  explicit operator bool() const { return ledger_ != nullptr; }
  void reset();
  /// From now on it belongs to what `governor` answers for; that must outlive it.
  void put_under(const Governor& governor);

 private:
  friend class Ledger;
  Buffer(Ledger* ledger, Index id, std::byte* data, Index bytes)
      : ledger_(ledger), id_(id), data_(data), bytes_(bytes) {}

  Ledger* ledger_ = nullptr;
  Index id_ = 0;
  std::byte* data_ = nullptr;
  Index bytes_ = 0;
};

/// The books of one memory pool of one rank: who holds how many bytes for what, against a budget.
/// Only the rank's compute thread uses it, in program order, so peaks and failures are the same in
/// every run.
class Ledger {
 public:
  static constexpr Index kUnlimited = std::numeric_limits<Index>::max();
  static constexpr std::size_t kAlignment = 64;

  /// `memory` is where the bytes come from; it must outlive the ledger, as must `recorder`.
  Ledger(std::string pool, Recorder& recorder, Index budget = kUnlimited,
         std::pmr::memory_resource* memory = std::pmr::new_delete_resource());
  ~Ledger();
  Ledger(const Ledger&) = delete;
  Ledger& operator=(const Ledger&) = delete;

  /// Takes `bytes` (0 is allowed). `governor`, if given, must outlive the buffer.
  /// Throws OutOfMemory.
  Buffer allocate(Index bytes, Category category, std::string owner,
                  const Governor* governor = nullptr);

  const Usage& live() const { return live_; }
  /// Usage at the moment of the highest total.
  const Usage& peak() const { return peak_; }
  /// The highest usage of each category by itself.
  const Usage& category_peak() const { return category_peak_; }
  /// Usage at the last step boundary.
  const Usage& steady() const { return steady_; }
  Index budget() const { return budget_; }

  void mark_step_boundary() { steady_ = live_; }

  /// Everything that is live, summed by owner and category, largest first.
  std::vector<Holding> holders() const;

 private:
  friend class Buffer;
  friend class HighWater;
  struct Block {
    Index bytes;
    Category category;
    std::string owner;
    const Governor* governor;
  };
  /// One allocation, or its end. The owner of a block that is live is in `blocks_`, that of one
  /// that is gone in the entry of its end: no name is copied for what nobody may ever read.
  struct Change {
    Index id = 0;  // 0: none yet
    bool ends = false;
    Index bytes = 0;
    Category category = Category::parameters;
    Index live = 0;  // then
    Place place = {};
    std::string owner = {};
  };
  static constexpr std::size_t kChangesKept = 10;

  void release(Index id, std::byte* data);
  void put_under(Index id, const Governor& governor) { blocks_.at(id).governor = &governor; }
  Change& note_change(Index id, Index bytes, Category category);
  Shortage shortage(const Block& wanted) const;
  std::vector<Shortage::Change> last_changes() const;
  std::vector<Shortage::Advice> advice(const Block& wanted) const;

  std::string pool_;
  Recorder& recorder_;
  Index budget_;
  std::pmr::memory_resource* memory_;
  Usage live_, peak_, category_peak_, steady_;
  Index live_total_ = 0;
  Index peak_total_ = 0;
  std::vector<HighWater*> high_waters_;
  Index next_id_ = 1;
  std::unordered_map<Index, Block> blocks_;
  std::array<Change, kChangesKept> changes_;  // a ring
  std::size_t next_change_ = 0;
};

}  // namespace zerolab
