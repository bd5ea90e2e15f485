#pragma once

#include <deque>
#include <map>
#include <optional>
#include <vector>

#include "stages/zero3/coordinator.hpp"
#include "stages/zero3/pieces.hpp"

namespace zerolab {

/// The parameters that are whole on this rank, or on their way: carries out what the coordinator
/// decides. A parameter's buffer is taken when its all-gather is issued and given back when it is
/// released, so that what is held when follows from the decisions alone, never from timing.
class Gathered {
 public:
  explicit Gathered(Runtime& runtime) : runtime_(runtime) {}

  /// What is gathered from, and who answers for the memory of it; all of them outlive this.
  void set_up(ParameterSet& parameters, const Pieces& layout, const PieceBuffer& pieces,
              const Governor& governor);

  /// `module` is the one on whose behalf, null if there is none.
  void carry_out(const std::vector<Action>& actions, const Module* module);

  /// This rank's piece of a parameter that has been written while it is whole.
  void take_over(const Parameter& parameter);

  /// After an exception, which may have come between two actions, or before all of an action: lets
  /// everything go that is really there, but for what persists or a scope holds.
  void let_all_go(const std::vector<bool>& persistent);

  /// The parameter whose buffer is being taken, if one is.
  std::optional<Index> asked_for() const { return asked_for_; }
  /// Of the buffer of a parameter that is whole; of all buffers that there are.
  Index bytes_of(const Parameter& parameter) const;
  Index bytes() const { return bytes_; }

 private:
  struct InFlight {
    std::vector<Parameter*> parameters;
    std::vector<Cause> causes;
    Pending pending;
  };

  void gather(const std::vector<Parameter*>& parameters, Cause cause, const Module* module);
  void wait(const std::vector<Parameter*>& parameters, const Module* module);
  void release(const std::vector<Parameter*>& parameters, Cause cause, const Module* module);

  Runtime& runtime_;
  ParameterSet* parameters_ = nullptr;
  const Pieces* layout_ = nullptr;
  const PieceBuffer* pieces_ = nullptr;
  const Governor* governor_ = nullptr;
  std::optional<Index> asked_for_;
  std::map<Index, Buffer> whole_;  // by parameter id
  Index bytes_ = 0;                // of them
  std::deque<InFlight> in_flight_;
};

}  // namespace zerolab
