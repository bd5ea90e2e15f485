#pragma once

#include <map>
#include <string>
#include <vector>

#include "visualize/log/run_folder.hpp"
#include "visualize/verify/findings.hpp"

namespace zerolab::verify {

/// Keeps the books of a rank's pools once more.
class Ledger {
 public:
  Ledger(const log::Run& run, const Reporter& report) : run_(run), report_(report) {}

  void see(const log::Event& event, const log::MemoryEvent& memory);
  void see(const log::StepEvent& step);
  /// Of a log that is whole, with what summary.json says of the device of this rank.
  void end(Count rank, const log::MemoryUse& summary) const;

 private:
  struct Pool {
    Count live = 0, peak = 0;  // as the log has them
    Count total = 0, highest = 0;
    log::Usage usage{};
    log::MemoryUse measured;
    // By owner, category and bytes: the lines in which such a block was taken.
    std::map<std::string, std::vector<Count>> blocks;
  };
  void take(Pool& pool, const log::Event& event, const log::MemoryEvent& memory);
  void give_back(Pool& pool, const log::Event& event, const log::MemoryEvent& memory);

  const log::Run& run_;
  const Reporter& report_;
  std::map<std::string, Pool> pools_;
};

}  // namespace zerolab::verify
