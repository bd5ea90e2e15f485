#include "stages/memory/ledger.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <iterator>
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

std::string_view name_of(Category category) {
  switch (category) {
    case Category::parameters:
      return "parameters";
    case Category::gradients:
      return "gradients";
    case Category::optimizer:
      return "optimizer";
    case Category::activations:
      return "activations";
    case Category::gather_buffers:
      return "gather_buffers";
    case Category::reduce_buffers:
      return "reduce_buffers";
    case Category::workspace:
      return "workspace";
    case Category::checkpoint:
      return "checkpoint";
  }
  return "?";
}

Index Usage::total() const {
  Index sum = 0;
  for (const Index bytes : by_category) sum += bytes;
  return sum;
}

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

Ledger::Ledger(std::string pool, Recorder& recorder, Index budget,
               std::pmr::memory_resource* memory)
    : pool_(std::move(pool)), recorder_(recorder), budget_(budget), memory_(memory) {}

Ledger::~Ledger() = default;

Buffer Ledger::allocate(Index bytes, Category category, std::string owner,
                        const Setting* scales_with) {
  Block block{bytes, category, std::move(owner), scales_with};
  if (bytes > budget_ - live_total_) {
    throw OutOfMemory(Code::out_of_memory, report(block), advice(block));
  }
  auto* data = static_cast<std::byte*>(memory_->allocate(taken_bytes(bytes), kAlignment));
  poison(data, bytes);
  live_total_ += bytes;
  live_[category] += bytes;
  category_peak_[category] = std::max(category_peak_[category], live_[category]);
  if (live_total_ > peak_total_) {
    peak_total_ = live_total_;
    peak_ = live_;
  }
  if (recorder_.active()) {
    recorder_.record(
        AllocEvent{pool_, name_of(category), bytes, live_total_, peak_total_, block.owner});
  }
  const Index id = next_id_++;
  blocks_.emplace(id, std::move(block));
  return Buffer(this, id, data, bytes);
}

void Ledger::release(Index id, std::byte* data) {
  const auto entry = blocks_.find(id);
  const Block& block = entry->second;
  live_total_ -= block.bytes;
  live_[block.category] -= block.bytes;
  if (recorder_.active()) {
    recorder_.record(FreeEvent{pool_, name_of(block.category), block.bytes, live_total_,
                               peak_total_, block.owner});
  }
  poison(data, block.bytes);
  memory_->deallocate(data, taken_bytes(block.bytes), kAlignment);
  blocks_.erase(entry);
}

std::vector<Ledger::Holder> Ledger::holders() const {
  std::map<std::pair<std::string, Category>, Index> sums;
  for (const auto& [id, block] : blocks_) sums[{block.owner, block.category}] += block.bytes;
  std::vector<Holder> result;
  for (const auto& [key, bytes] : sums) {
    if (bytes > 0) result.push_back({key.first, key.second, bytes});
  }
  std::stable_sort(result.begin(), result.end(),
                   [](const Holder& a, const Holder& b) { return a.bytes > b.bytes; });
  return result;
}

std::string Ledger::report(const Block& wanted) const {
  fmt::memory_buffer text;
  const auto add = [&text]<typename... Args>(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(text), format, std::forward<Args>(args)...);
  };
  add("rank {} is out of {} memory: {} ({}) for {} [{}] in {}\n", recorder_.rank(), pool_,
      human_bytes(wanted.bytes), wanted.bytes, wanted.owner, name_of(wanted.category),
      recorder_.where());
  add("  budget {} bytes, live {}, short by {}\n", budget_, live_total_,
      wanted.bytes - (budget_ - live_total_));
  add("  live by category:\n");
  for (std::size_t c = 0; c < kCategories; ++c) {
    const auto category = static_cast<Category>(c);
    if (live_[category] > 0) add("    {:<15} {:>14}\n", name_of(category), live_[category]);
  }
  add("  largest holders:\n");
  const std::vector<Holder> all = holders();
  for (std::size_t i = 0; i < std::min(kHoldersShown, all.size()); ++i) {
    add("    {:>14}  {} [{}]\n", all[i].bytes, all[i].owner, name_of(all[i].category));
  }
  text.resize(text.size() - 1);
  return fmt::to_string(text);
}

// For each setting that something live, or the request itself, scales with: the largest value with
// which this allocation would have fitted, everything else as it is.
std::string Ledger::advice(const Block& wanted) const {
  std::map<const Setting*, Index> scaling;  // bytes proportional to the setting
  for (const auto& [id, block] : blocks_) {
    if (block.scales_with != nullptr) scaling[block.scales_with] += block.bytes;
  }
  if (wanted.scales_with != nullptr) scaling[wanted.scales_with] += wanted.bytes;

  const Index needed = live_total_ + wanted.bytes;
  std::map<std::string, std::string> lines;  // by name: the order of pointers is not decided
  for (const auto& [setting, bytes] : scaling) {
    if (setting->value <= 0 || bytes == 0) continue;
    const Index fixed = needed - bytes;
    // Multiplied first, in 64 bits of mantissa: dividing first would be one too low at times.
    const auto fits = static_cast<Index>(static_cast<long double>(budget_ - fixed) *
                                         static_cast<long double>(setting->value) /
                                         static_cast<long double>(bytes));
    if (fits >= setting->least) {
      lines[setting->name] = fmt::format("{} {} would have fitted (it is {})", setting->name,
                                         std::min(fits, setting->value - 1), setting->value);
    }
  }
  std::string text = fmt::format("--device-memory {} or more for this allocation", needed);
  for (const auto& [name, line] : lines) text += "; or " + line;
  return text + "; or more ranks, or a higher stage";
}

std::string human_bytes(Index bytes) {
  constexpr std::array kUnits{"B", "KiB", "MiB", "GiB", "TiB"};
  if (bytes < 1024) return fmt::format("{} B", bytes);
  auto value = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (value >= 1024 && unit + 1 < kUnits.size()) {
    value /= 1024;
    ++unit;
  }
  return fmt::format("{:.{}f} {}", value, value < 10 ? 2 : value < 100 ? 1 : 0, kUnits[unit]);
}

}  // namespace zerolab
