#pragma once

#include <array>
#include <limits>
#include <memory_resource>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "stages/base/error.hpp"
#include "stages/base/values.hpp"
#include "stages/trace/recorder.hpp"

namespace zerolab {

/// What tensor memory is used for.
enum class Category {
  parameters,
  gradients,
  optimizer,
  activations,
  gather_buffers,  // gathered copies of parameters, persistent ones too
  reduce_buffers,  // receive buffers, and whole gradients held for a moment
  workspace,       // scratchpads of the device library
  checkpoint,
};
inline constexpr std::size_t kCategories = 8;
std::string_view name_of(Category category);

/// Bytes by category.
struct Usage {
  std::array<Index, kCategories> by_category{};

  Index operator[](Category category) const {
    return by_category[static_cast<std::size_t>(category)];
  }
  Index& operator[](Category category) { return by_category[static_cast<std::size_t>(category)]; }
  Index total() const;
};

/// A setting that an allocation's size is proportional to: the out-of-memory report computes the
/// largest value with which the allocation would have fitted.
struct Setting {
  std::string name;
  Index value = 0;
  Index least = 1;  // smallest value that makes sense
};

/// Thrown when a pool would go over its budget. The pool is unchanged.
class OutOfMemory : public Error {
 public:
  using Error::Error;
};

class Ledger;

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

  /// Takes `bytes` (0 is allowed). `scales_with`, if given, must outlive the buffer.
  /// Throws OutOfMemory.
  Buffer allocate(Index bytes, Category category, std::string owner,
                  const Setting* scales_with = nullptr);

  const Usage& live() const { return live_; }
  /// Usage at the moment of the highest total.
  const Usage& peak() const { return peak_; }
  /// The highest usage of each category by itself.
  const Usage& category_peak() const { return category_peak_; }
  /// Usage at the last step boundary.
  const Usage& steady() const { return steady_; }
  Index budget() const { return budget_; }

  void mark_step_boundary() { steady_ = live_; }

  struct Holder {
    std::string owner;
    Category category;
    Index bytes;
  };
  /// Everything that is live, summed by owner and category, largest first.
  std::vector<Holder> holders() const;

 private:
  friend class Buffer;
  struct Block {
    Index bytes;
    Category category;
    std::string owner;
    const Setting* scales_with;
  };

  void release(Index id, std::byte* data);
  std::string report(const Block& wanted) const;
  std::string advice(const Block& wanted) const;

  std::string pool_;
  Recorder& recorder_;
  Index budget_;
  std::pmr::memory_resource* memory_;
  Usage live_, peak_, category_peak_, steady_;
  Index live_total_ = 0;
  Index peak_total_ = 0;
  Index next_id_ = 1;
  std::unordered_map<Index, Block> blocks_;
};

/// "1.25 MiB", "312 B": for people; logs have plain byte counts.
std::string human_bytes(Index bytes);

}  // namespace zerolab
