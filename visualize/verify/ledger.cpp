#include "visualize/verify/ledger.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace zerolab::verify {
namespace {

constexpr const char* kDevice = "device";

std::string block_of(const log::MemoryEvent& memory) {
  return fmt::format("{} bytes [{}] of {}", memory.bytes, name_of(memory.category),
                     in_quotes(memory.owner));
}

std::string key_of(const log::MemoryEvent& memory) {
  return fmt::format("{} {} {}", memory.bytes, name_of(memory.category), memory.owner);
}

}  // namespace

void Ledger::see(const log::Event& event, const log::MemoryEvent& memory) {
  Pool& pool = pools_[memory.pool];
  const Count live = memory.taken ? pool.live + memory.bytes : pool.live - memory.bytes;
  if (memory.live != live) {
    report_(Kind::live_bytes, event.line,
            fmt::format("live is {} after {} {} bytes, it was {}", memory.live,
                        memory.taken ? "an alloc of" : "a free of", memory.bytes, pool.live));
  }
  const Count peak = std::max(pool.peak, memory.live);
  if (memory.peak != peak) {
    report_(Kind::peak_bytes, event.line,
            fmt::format("peak is {}, the highest live so far is {}", memory.peak, peak));
  }
  pool.live = memory.live;  // one wrong line is told once
  pool.peak = memory.peak;
  if (memory.taken) {
    take(pool, event, memory);
  } else {
    give_back(pool, event, memory);
  }
}

void Ledger::take(Pool& pool, const log::Event& event, const log::MemoryEvent& memory) {
  pool.blocks[key_of(memory)].push_back(event.line);
  const auto category = static_cast<std::size_t>(memory.category);
  pool.usage[category] += memory.bytes;
  pool.total += memory.bytes;
  Count& most = pool.measured.category_peak[category];
  most = std::max(most, pool.usage[category]);
  if (pool.total > pool.highest) {
    pool.highest = pool.total;
    pool.measured.peak = pool.usage;
  }
  if (memory.pool == kDevice && run_.device_memory && memory.live > *run_.device_memory) {
    report_(Kind::over_budget, event.line,
            fmt::format("live is {} after {}, the budget is {} (device_memory in run.json)",
                        memory.live, block_of(memory), *run_.device_memory));
  }
}

void Ledger::give_back(Pool& pool, const log::Event& event, const log::MemoryEvent& memory) {
  const auto found = pool.blocks.find(key_of(memory));
  if (found == pool.blocks.end()) {
    report_(Kind::free_of_nothing, event.line,
            fmt::format("{} are freed, and were not allocated", block_of(memory)));
    return;
  }
  found->second.pop_back();
  if (found->second.empty()) pool.blocks.erase(found);
  pool.usage[static_cast<std::size_t>(memory.category)] -= memory.bytes;
  pool.total -= memory.bytes;
}

void Ledger::see(const log::StepEvent& /*step*/) {
  for (auto& [name, pool] : pools_) pool.measured.steady = pool.usage;
}

void Ledger::end(Count rank, const log::MemoryUse& summary) const {
  for (const auto& [name, pool] : pools_) {
    for (const auto& [key, lines] : pool.blocks) {
      for (const Count line : lines) {
        report_(Kind::never_freed, line, fmt::format("never freed: {}", key));
      }
    }
  }
  const auto device = pools_.find(kDevice);
  const log::MemoryUse measured =
      device == pools_.end() ? log::MemoryUse{} : device->second.measured;
  const auto compare = [&](const char* what, const log::Usage& said, const log::Usage& found) {
    for (std::size_t i = 0; i < said.size(); ++i) {
      if (said[i] == found[i]) continue;
      report_(Kind::memory_summary, 0,
              fmt::format("summary.json has {} bytes of {} as {} of rank {}, its log comes to {}",
                          said[i], name_of(static_cast<log::Category>(i)), what, rank, found[i]));
    }
  };
  compare("peak", summary.peak, measured.peak);
  compare("category_peak", summary.category_peak, measured.category_peak);
  compare("steady", summary.steady, measured.steady);
}

}  // namespace zerolab::verify
