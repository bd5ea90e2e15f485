#pragma once

#include <vector>

#include "stages/zero3/gathered.hpp"

namespace zerolab {

FetchLimits fetch_limits(const ZeroSettings& settings);

/// Answers for the memory of what stage 3 gathers: under other limits other parameters would be
/// whole. It is asked only when an allocation does not fit.
class GatherMemory final : public Governor {
 public:
  /// All of them outlive this.
  GatherMemory(Runtime& runtime, const Coordinator& coordinator, const Gathered& gathered);
  void set_up(const ParameterSet& parameters) { parameters_ = &parameters; }

  /// The coordinator is about to be told of an event; what it decided has been carried out.
  void begin_event();
  void end_event() { since_.restart(); }

  std::vector<Setting> settings() const override;
  Index bytes_at(std::size_t index, Index value, const Held& held) const override;

 private:
  Index beside() const { return since_.bytes() - gathered_.bytes(); }
  std::vector<Index> gathered_bytes(const ZeroSettings& settings) const;

  Runtime& runtime_;
  const Coordinator& coordinator_;
  const Gathered& gathered_;
  const ParameterSet* parameters_ = nullptr;
  HighWater since_;            // the last event
  std::vector<Index> beside_;  // before each event of this pass: the most that was not gathered
};

}  // namespace zerolab
