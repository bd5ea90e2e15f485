#pragma once

#include <optional>
#include <string>

#include "stages/base/types.hpp"

namespace zerolab {

/// One side of train_batch_size = train_micro_batch_size_per_gpu * gradient_accumulation_steps *
/// ranks, as far as a person gave it; `source` says who.
struct GivenSize {
  Index value = 0;
  std::string source;
};

struct BatchSizes {
  Index train = 0, micro = 0, accumulation = 1;
};

struct BatchQuestion {
  std::optional<GivenSize> train, micro, accumulation;
  std::optional<Index> preset_micro;  // counts only where DeepSpeed would have to give up
  int ranks = 1;
  std::string ranks_source;
};

/// Completes the equation as DeepSpeed does, but never by rounding. On a contradiction the sizes
/// are empty and `problem` has the arithmetic.
struct BatchAnswer {
  std::optional<BatchSizes> sizes;
  std::string problem;
};
BatchAnswer complete_batch_sizes(const BatchQuestion& question);

}  // namespace zerolab
