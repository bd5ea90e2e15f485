#pragma once

#include "visualize/log/run_folder.hpp"

namespace zerolab::verify {

// The state machine once more, from the guides (docs/log-format.md, stages/zero3/README.md): a
// reference that shared the table with the stages would repeat its mistakes.

bool legal(log::Count stage, const log::Move& move);
bool legal(const log::GradientMove& move);

/// Whether any stage makes this move.
bool known(const log::Move& move);

/// All that are legal, in the order of the log's words.
std::vector<log::Move> legal_moves(log::Count stage);
std::vector<log::GradientMove> legal_gradient_moves();

/// What parameters take in collectives, with padding.
class Padding {
 public:
  explicit Padding(const log::Run& run);

  /// In an all-gather (stage 3) or a reduction: stage 3 pads every parameter to a multiple of N;
  /// the others pad their flat buffer, behind the last parameter that is trained.
  log::Count elements(std::size_t parameter) const;
  /// Stages 1 and 2: of the flat buffer, a multiple of 2N.
  log::Count flat() const { return flat_; }

 private:
  const log::Run& run_;
  log::Count trainable_ = 0;
  log::Count flat_ = 0;
  std::size_t last_ = 0;  // of those that are trained and not empty
};

}  // namespace zerolab::verify
