#pragma once

#include "stages/config/settings.hpp"
#include "stages/model/model.hpp"

namespace zerolab {

/// Answers for activations: their size is proportional to the micro-batch, and what forward keeps
/// inside of blocks would not be there with activation checkpointing.
class ActivationMemory final : public Governor {
 public:
  /// `pass`: which one is running. All of them outlive this.
  ActivationMemory(const Settings& settings, Model& model, const VisitKind& pass,
                   const Recorder& recorder)
      : settings_(settings), model_(model), pass_(pass), recorder_(recorder) {}

  std::vector<Setting> settings() const override;
  Index bytes_at(std::size_t index, Index value, const Held& held) const override;

 private:
  bool before_blocks_run_again() const;

  const Settings& settings_;
  Model& model_;
  const VisitKind& pass_;
  const Recorder& recorder_;
};

}  // namespace zerolab
