#pragma once

#include <vector>

#include "stages/config/settings.hpp"
#include "stages/memory/governor.hpp"
#include "stages/model/parameter_set.hpp"
#include "stages/trace/recorder.hpp"

namespace zerolab {

/// The bytes of a rank's model states, in the order in which a stage takes memory for them:
/// parameters, gradients, master weights, moments, frozen parameters (in stage 3 these are among
/// the parameters).
std::vector<Index> model_state_bytes(const ParameterSet& parameters, const Settings& settings,
                                     int stage, Index ranks);

/// Answers for model states while they are set up, when there is nothing else: a higher stage or
/// more ranks leave less of them on each.
class ModelStateMemory final : public Governor {
 public:
  /// All of them outlive this.
  ModelStateMemory(const ParameterSet& parameters, const Settings& settings, int ranks,
                   const Recorder& recorder)
      : parameters_(parameters), settings_(settings), ranks_(ranks), recorder_(recorder) {}

  std::vector<Setting> settings() const override;
  Index bytes_at(std::size_t index, Index value, const Held& held) const override;

 private:
  const ParameterSet& parameters_;
  const Settings& settings_;
  int ranks_;
  const Recorder& recorder_;
};

}  // namespace zerolab
