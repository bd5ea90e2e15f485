#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "stages/engine/stage.hpp"

namespace zerolab {

/// Parameters whole on every rank for as long as this lives, in every stage alike, to be read, or
/// to be written by one rank (DeepSpeed has the same scope).
///
///     {
///       GatheredParameters scope(runtime, stage, {&embedding}, 0);
///       if (runtime.rank() == 0) write_in_scope(runtime, embedding, values);
///     }  // every rank has rank 0's values now
///
/// All ranks make it and end it together, with the same parameters and owner. A parameter given
/// twice counts once. Scopes may be nested, if they hold different parameters.
class GatheredParameters {
 public:
  /// `modifier_rank`: whose values are everybody's afterwards; none: nobody writes. Throws Error
  /// (Code::held_by_scope, Code::usage for a rank that there is not), OutOfMemory.
  GatheredParameters(Runtime& runtime, Stage& stage, std::vector<Parameter*> parameters,
                     std::optional<int> modifier_rank = std::nullopt);

  /// Ends the scope; when an exception is passing by, without anything new: it talks to nobody, and
  /// what was written is lost or undefined. Otherwise throws Error (Code::edit_without_owner) on
  /// every rank when one of them wrote where nobody was to.
  ~GatheredParameters() noexcept(false);
  GatheredParameters(const GatheredParameters&) = delete;
  GatheredParameters& operator=(const GatheredParameters&) = delete;

 private:
  void share_what_was_written();
  void check_that_nobody_wrote() const;
  void end();

  Runtime& runtime_;
  Stage& stage_;
  std::vector<Parameter*> parameters_;
  std::optional<int> modifier_rank_;
  std::vector<std::uint64_t> before_;  // a hash of each parameter
  int exceptions_;                     // passing by when it began
};

/// The whole value of a parameter that a scope holds, and a new one, on the scope's rank; as floats
/// in host memory, whatever type the weights have. Both throw Error: Code::parameter_not_available
/// when no scope holds it, in every stage, since where the parameter is whole anyway a write would
/// be this rank's alone; `write_in_scope` Code::usage when there are not numel() values.
std::vector<float> read_in_scope(Runtime& runtime, const Parameter& parameter);
void write_in_scope(Runtime& runtime, Parameter& parameter, const std::vector<float>& values);

}  // namespace zerolab
